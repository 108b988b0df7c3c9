#!/usr/bin/env python3
"""Tests each tier, in a process of its own: what remains when something better is missing or forbidden."""

import importlib.util
import os
import subprocess
import sys
import unittest

if importlib.util.find_spec('torch') is None:
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = '''
import sys
sys.path.insert(0, %r)
import torch
import torch_binding as binding
words, missing = binding.bind(ops=%r, python=%r)
binding.watch_modules()
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
binding.name_modules(model=model)
seen = []

class Probe(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        seen.append(binding.site())
        return x.clone()
    @staticmethod
    def backward(ctx, g):
        seen.append(binding.site())
        return g

class Module(torch.nn.Module):
    def forward(self, x):
        return Probe.apply(model(x))

probe = Module()
binding.name_modules(probe=probe)
for _ in range(%d):
    probe(torch.randn(2, 4)).sum().backward()
    optimizer.step()
print(sorted(words))
print(missing)
for where in seen:
    print(where.phase, where.layer, where.node)
print(len(binding.take()), binding.library().test_steps(), binding.library().test_exits())
'''


class TierTest(unittest.TestCase):

    def run_tier(self, tier='', ops=False, python=True, steps=1, **environment):
        environment = dict(os.environ, RFINJECT_TIER=tier, **environment)
        program = PROGRAM % (HERE, ops, python, steps)
        out = subprocess.run([sys.executable, '-c', program], env=environment, check=True, capture_output=True,
                             text=True)
        self.assertEqual(out.stderr, '')
        lines = out.stdout.splitlines()
        return set(eval(lines[0])), lines[1], lines[2:-1], [int(word) for word in lines[-1].split()]

    def test_best(self):
        words, _, seen, _ = self.run_tier()
        self.assertLessEqual({'sequence', 'current_node'}, words)
        self.assertEqual(seen[0], 'forward probe -')
        self.assertTrue(seen[1].startswith('backward probe '), seen)

    def test_b_agrees(self):
        words, missing, seen, _ = self.run_tier('B')
        self.assertNotIn('current_node', words)
        self.assertIn('backward_scope', words, missing)
        self.assertEqual(seen, ['forward probe -', 'backward probe ProbeBackward'])

    def test_d_knows_phases_and_names(self):
        words, missing, seen, _ = self.run_tier('D')
        self.assertEqual(words, {'record_function'})
        self.assertIn('RFINJECT_TIER', missing)
        self.assertEqual(seen[1], 'backward - ProbeBackward')

    def test_no_python(self):
        # What a C++ program gets: its operators' operands, and the nodes by their sequence numbers.
        words, missing, seen, _ = self.run_tier(python=False, ops=True)
        self.assertLessEqual({'record_function', 'operands', 'sequence'}, words)
        self.assertEqual(missing, '')
        # The class of the node in C++: its name in Python is asked of Python.
        self.assertEqual(seen[1], 'backward - PyNode')

    def test_f_does_nothing(self):
        words, missing, seen, counts = self.run_tier('F', ops=True)
        self.assertEqual((words, missing), (set(), 'RFINJECT_TIER=F'))
        self.assertEqual(seen, ['other - -', 'other - -'])
        self.assertEqual(counts, [0, 0, 0])

    def test_window_and_polite_exit(self):
        # Operators outside of the window are not looked at; the end of the window asks the program once to end.
        *_, all_steps = self.run_tier(ops=True, steps=5)
        *_, counts = self.run_tier(ops=True, steps=5, RFINJECT_SKIP='1', RFINJECT_STEPS='2', RFINJECT_KILL='1')
        self.assertEqual(counts[1:], [5, 1])
        self.assertGreater(counts[0], 0)
        self.assertLess(counts[0], all_steps[0] * 3 // 5)
        *_, counts = self.run_tier(ops=True, steps=2, RFINJECT_STEPS='2')
        self.assertEqual(counts[1:], [2, 0])


if __name__ == '__main__':
    unittest.main()
