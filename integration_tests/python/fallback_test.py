"""Every lower tier works and says why it is not a better one, on real torch."""

import support

NET = """
import torch
from torch import nn
class Block(nn.Module):
    def __init__(self, error=None):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.act = nn.Tanh()
        self.error = error
    def forward(self, x):
        x = self.act(self.fc(x))
        if self.error:
            raise self.error
        return x + 1
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.bad = nn.Sequential(Block(ValueError("no")))
        self.good = nn.Sequential(Block(), Block())
    def forward(self, x):
        try:
            self.bad(x)
        except ValueError:
            pass
        return self.good(x).neg()
torch.manual_seed(1)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    loss = model(torch.ones(2, 4)).sum()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
"""


class Fallback(support.TestCase):
    without = None  # what NET does without the library: the same for every tier

    def net(self, **variables):
        if self.without is None:
            type(self).without = self.plain([support.PYTHON, self.write("program.py", NET)])
        result = self.inject([support.PYTHON, self.write("program.py", NET)], **variables)
        self.assert_the_same(self.without, result)
        return result

    def test_best(self):
        result = self.net()
        self.assertEqual(result.trace.tier, "A", result.trace.process.get("tier_reason"))
        self.assertNotIn("tier", result.trace.diagnostic_ids())

    def test_call_slots(self):
        result = self.net(RFINJECT_TIER="C")
        trace = result.trace
        self.assertEqual(trace.tier, "C")
        self.assertEqual(trace.process["tier_reason"], "RFINJECT_TIER=C")
        self.assertIn("tier", trace.diagnostic_ids())
        forward = self.ops(trace, "forward")
        self.assertEqual(forward[("Net", "")], {"aten::neg": 3})
        self.assertEqual(forward[("Net", "good.1")], {"aten::add": 3})
        self.assertEqual(forward[("Net", "bad.0.act")], {"aten::tanh": 3})
        self.assertEqual(trace.layer("good.0.fc")["input_shape"], "f32[2,4]")
        self.assert_all_attributed(trace)
        self.assertEqual(len(trace.steps), 3)

    def test_no_function(self):
        # The program has put something else in place of the function before the library was loaded.
        trace = self.program("""
import ctypes
from torch import nn
class Call:
    def __init__(self, function):
        self.function = function
    def __get__(self, module, owner):
        return self if module is None else self.function.__get__(module)
nn.Module.__call__ = Call(nn.Module.__call__)
ctypes.CDLL(%r).InitializeInjection()
""" % support.LIBRARY + NET, LD_PRELOAD=None).trace
        self.assertEqual(trace.tier, "C")
        self.assertEqual(trace.process["tier_reason"], "Module.__call__: it is no plain Python function")
        self.assertEqual(self.ops(trace, "forward")[("Net", "good.1")], {"aten::add": 3})
        self.assertEqual(len(trace.steps), 3)

    def test_no_layers(self):
        trace = self.net(RFINJECT_TIER="D").trace
        self.assertEqual(trace.tier, "D")
        self.assertEqual(trace.layers, {})
        self.assertEqual(len(trace.steps), 3)
        self.assertEqual(trace.process["tier_reason"], "RFINJECT_TIER=D")

    def test_nothing_but_layers(self):
        # No --estimate and no GPU: the layers and steps are there.
        trace = self.net(RFINJECT_ESTIMATE=None).trace
        self.assertEqual(trace.source, "none")
        self.assertIn("good.1.fc", trace.paths())
        self.assertEqual(len(trace.steps), 3)


if __name__ == "__main__":
    support.main()
