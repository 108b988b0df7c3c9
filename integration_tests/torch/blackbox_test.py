#!/usr/bin/env python3
"""The finished library on unmodified programs: which layer and phase their operators are in, read from the trace.

    RFINJECT_LIBRARY=build/release/lib/librfinject.so python3 blackbox_test.py
"""

import importlib.util
import collections
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import rfx_trace

try:
    import torch
    import torch.utils.checkpoint
except ImportError:
    sys.exit(77)
if importlib.util.find_spec('torchvision') is None:
    sys.exit(77)

TRAIN = '''
    import torch, torchvision
    torch.manual_seed(0)
    model = torchvision.models.%s(num_classes=10)
    criterion = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    x, y = torch.randn(2, 3, 64, 64), torch.tensor([0, 1])
    for _ in range(2):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print('%%.6f' %% loss.item())
'''


MEMORY_PROFILED = '''
    import torch
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        torch.ones(1000) + torch.ones(1000)
    # Which operator each belongs to is a matter of microseconds.
    print(sorted(event.nbytes() for event in profile.profiler.kineto_results.events() if event.name() == '[memory]'))
'''


def run(program, **environment):
    """Runs the program under the library; its standard output and its one trace."""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, LD_PRELOAD=os.environ['RFINJECT_LIBRARY'], RFINJECT_OUTPUT=folder + '/',
                           RFINJECT_ESTIMATE='V100-SXM2-16GB', RFINJECT_ESTIMATE_ON='cpu', **environment)
        result = subprocess.run([sys.executable, '-c', textwrap.dedent(program)], env=environment,
                                capture_output=True, text=True, timeout=250)
        traces = rfx_trace.read_traces(folder)
    if result.returncode != 0:
        raise AssertionError(result.stderr)
    return result.stdout, traces


def orphans(trace):
    return [row for row in trace.rows()
            if row['layer'] is None and row['phase'] in ('forward', 'backward', 'recompute')]


class BlackBoxTest(unittest.TestCase):

    def test_the_programs_profiler_hears_of_memory(self):
        # Torch's allocators find the library's function of that name first.
        plain = subprocess.run([sys.executable, '-c', textwrap.dedent(MEMORY_PROFILED)], capture_output=True, text=True,
                               check=True).stdout
        self.assertEqual(plain, '[-4000, -4000, -4000, 4000, 4000, 4000]\n')
        self.assertEqual(run(MEMORY_PROFILED)[0], plain)

    def test_resnet18_in_every_tier(self):
        plain = subprocess.run([sys.executable, '-c', textwrap.dedent(TRAIN % 'resnet18')], capture_output=True,
                               text=True, check=True).stdout
        sums = []
        for tier in 'ABC':
            with self.subTest(tier=tier):
                out, traces = run(TRAIN % 'resnet18', RFINJECT_TIER=tier)
                self.assertEqual(out, plain)
                self.assertEqual(len(traces), 1)
                trace = traces[0]
                self.assertEqual(trace.tier, tier)
                self.assertEqual(orphans(trace), [])
                self.assertEqual(trace.drops, {})
                flop = collections.Counter()
                for row in trace.rows():
                    if row['phase'] in ('forward', 'backward'):
                        flop[row['phase'], row['layer']] += row['rf.model_flop']
                sums.append(flop)
                # The stem convolves 3 channels into 64 by 7x7 and needs no gradient of the image.
                stem = 2 * 2 * 2 * 64 * 32 * 32 * 3 * 7 * 7
                self.assertEqual(flop['forward', 'conv1'], stem)
                convolution = sum(row['rf.model_flop'] for row in trace.rows()
                                  if row['layer'] == 'conv1' and row['op'] == 'aten::convolution_backward')
                self.assertEqual(convolution, stem)
        for other in sums[1:]:
            self.assertEqual(other, sums[0])

    def test_depthwise_and_functional_layers(self):
        _, traces = run(TRAIN % 'mobilenet_v2')
        self.assertEqual(orphans(traces[0]), [])
        rows = [row for row in traces[0].rows() if row['layer'] == 'features.1.conv.0.0']
        flop = {row['op']: row['rf.model_flop'] for row in rows if 'convolution' in row['op']}
        forward = 2 * 2 * 2 * 32 * 32 * 32 * 9  # steps, FLOP, batch, pixels, channels, window
        self.assertEqual(flop, {'aten::convolution': forward, 'aten::convolution_backward': 2 * forward})

    def test_checkpoint_and_double_backward(self):
        _, traces = run('''
            import torch
            from torch import nn
            from torch.utils.checkpoint import checkpoint
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.a = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
                    self.b = nn.Linear(8, 4)
                def forward(self, x):
                    return self.b(checkpoint(self.a, x, use_reentrant=False))
            model = Net()
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            x = torch.randn(3, 4, requires_grad=True)
            model(x).sum().backward()
            g, = torch.autograd.grad(model.b(torch.tanh(model.a[0](x))).sum(), x, create_graph=True)
            g.sum().backward()
            optimizer.step()
        ''')
        trace = traces[0]
        recomputed = {row['layer'] for row in trace.rows() if row['phase'] == 'recompute'}
        # Later torches stop the recomputation at the last tensor that is needed: the Tanh is not run again.
        stops_early = hasattr(torch.utils.checkpoint, 'set_checkpoint_early_stop')
        self.assertLessEqual({'a.0'} if stops_early else {'a.0', 'a.1'}, recomputed)
        # sum() and tanh() here are the program's own, outside of every module.
        self.assertLessEqual({row['node'] for row in orphans(trace)},
                             {'SumBackward0', 'TanhBackward0', 'TanhBackwardBackward0', 'ExpandBackward0'})


if __name__ == '__main__':
    unittest.main()
