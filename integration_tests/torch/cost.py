#!/usr/bin/env python3
"""What the binding costs the host, in ns, each way of binding in a process of its own. By hand; nothing judges it:

    RFINJECT_TORCH_HARNESS=build/release/lib/librfinject_torch_harness.so python3 integration_tests/torch/cost.py
"""

import os
import subprocess
import sys
import time


def best(function, count, rounds=100):
    """The least of many short rounds, in time of this thread: on a busy machine few rounds are undisturbed."""
    least = None
    for _ in range(rounds):
        begin = time.thread_time_ns()
        function()
        took = (time.thread_time_ns() - begin) / count
        least = took if least is None else min(least, took)
    return least


def measure(how):
    import torch
    import torch_binding as binding
    torch.set_num_threads(1)
    missing = ''
    if how != 'unbound':
        words, missing = binding.bind(ops=how == 'operators')
        binding.library().test_quiet()
    x = torch.zeros(4)
    n = 500

    def operators():
        for _ in range(n):
            torch.neg(x)

    def scopes():
        for _ in range(n // 10):
            with torch.profiler.record_function('Optimizer.zero_grad#SGD.zero_grad'):
                pass

    y = torch.zeros(4, requires_grad=True)
    for _ in range(200):
        y = -y
    y = y.sum()
    figures = {
        'operator': best(operators, n),
        'user scope': best(scopes, n // 10),
        'autograd node': best(lambda: y.backward(retain_graph=True), 200),
    }
    if how != 'unbound':
        figures['site, no node'] = best(lambda: binding.library().test_site_loop(10000), 10000)
        figures['layer enter and leave'] = best(lambda: binding.library().test_layer_loop(10000), 10000)
        in_node = []

        class Probe(torch.autograd.Function):

            @staticmethod
            def forward(ctx, x):
                return x.clone()

            @staticmethod
            def backward(ctx, g):
                in_node.append(best(lambda: binding.library().test_site_loop(10000), 10000))
                return g

        Probe.apply(y).backward(retain_graph=True)
        figures['site, in a node'] = in_node[0]
    print('%-10s torch %s  %s' % (how, torch.__version__, '  '.join('%s %.0f' % item for item in figures.items())))


if __name__ == '__main__':
    if len(sys.argv) > 1:
        measure(sys.argv[1])
    else:
        for how, tier in (('unbound', ''), ('best', ''), ('scope', 'B'), ('operators', '')):
            subprocess.run([sys.executable, __file__, how], check=True, env=dict(os.environ, RFINJECT_TIER=tier))
