"""Tests what a step is, on real torch: the program validates between epochs, only infers, cuts forwards short, accumulates
gradients, and treats the profiler's record_function in ways of its own."""

import support
from net import NET_PATHS, NetTestCase


class Steps(NetTestCase):
    def test_validation_between_epochs(self):
        trace = self.net("""
model = Net()
for epoch in range(2):
    model.train()
    train(model, steps=2)
    model.eval()
    with torch.no_grad():
        model(torch.ones(2, 3, 8, 8))
""")
        self.assertEqual(trace.paths("Net"), NET_PATHS)
        self.assertEqual(self.ops(trace, "forward")[("Net", "stem")], {"aten::convolution": 4})
        self.assertEqual(self.ops(trace, "eval")[("Net", "stem")], {"aten::convolution": 2})
        self.assertEqual(len(trace.steps), 4)
        self.assert_all_attributed(trace)

    def test_inference_steps(self):
        trace = self.net("""
model = Net().eval()
with torch.no_grad():
    for _ in range(4):
        model(torch.ones(3, 3, 8, 8))
""")
        # The last call counts, too, although no other call ends it: sums over four passes must not be divided by
        # three.
        self.assertEqual([step["samples"] for step in trace.steps], [3, 3, 3, 3])
        self.assertEqual(self.ops(trace, "forward")[("Net", "stem")], {"aten::convolution": 4})

    def test_a_forward_that_is_cut_short_is_no_step(self):
        trace = self.net("""
import os
model = Net().eval()
with torch.no_grad():
    model(torch.ones(3, 3, 8, 8))
    model.stem.register_forward_hook(lambda *args: os._exit(0))
    model(torch.ones(3, 3, 8, 8))
""")
        self.assertEqual(len(trace.steps), 1)

    def test_making_weights_is_of_no_step(self):
        trace = self.net("""
model = Net()
torch.nn.init.normal_(model.stem.weight)
train(model, steps=2)
late = torch.nn.Linear(4, 4)
train(model, steps=1)
""")
        outside = self.ops(trace, "other")[("", None)]
        self.assertNotIn("aten::normal_", outside)
        self.assertEqual(outside["aten::uniform_"], 2)  # of the layer that was made between two steps

    def test_steps_are_seen_however_record_function_is_treated(self):
        # The class whose type slots tell of optimizer steps is patched by the program, subclassed, and left by
        # exceptions.
        trace = self.net("""
from torch.autograd import profiler
model = Net()
train(model, steps=2)
plain = profiler.record_function.__init__
profiler.record_function.__init__ = lambda self, *args, **kwargs: plain(self, *args, **kwargs)
train(model, steps=2)
profiler.record_function.__init__ = plain
deleted = []
profiler.record_function.__del__ = lambda self: deleted.append(self.name)
train(model, steps=2)
assert sum(name.startswith("Optimizer.step#") for name in deleted) >= 1, deleted
del profiler.record_function.__del__
class Mine(profiler.record_function):
    def __init__(self):
        super().__init__("Optimizer.step#Mine.step")
with Mine():
    pass
kept = profiler.record_function("mine")
with kept:
    pass
with kept:
    pass
@profiler.record_function("decorated")
def decorated():
    pass
decorated()
profiler.record_function(name="by keyword")
profiler.record_function("never entered")
try:
    profiler.record_function()
except TypeError:
    pass
else:
    raise AssertionError("no TypeError")
class Fails(torch.optim.SGD):
    def step(self, closure=None):
        raise RuntimeError("fails")
try:
    Fails(model.parameters(), 0.1).step()
except RuntimeError:
    pass
train(model, steps=2)
""")
        self.assertEqual(len(trace.steps), 9)  # a step that fails has ended, too
        self.assertEqual({row["phase"] for row in trace.rows() if row["layer"] is not None} - {"forward", "backward"},
                         set())

    def test_steps_beside_a_busy_python_thread(self):
        # The end of a step releases the GIL and takes it back, in training and in inference.
        beside = """
import threading
stop = threading.Event()
def spin():
    while not stop.is_set():
        pass
thread = threading.Thread(target=spin)
thread.start()
%s
stop.set()
thread.join()
"""
        training = "train(Net(), steps=5)"
        inference = """
model = Net().eval()
with torch.no_grad():
    for _ in range(5):
        model(torch.ones(2, 3, 8, 8))
"""
        for program in (training, inference):
            with self.subTest(program=program):
                self.assertEqual(len(self.net(beside % program).steps), 5)

    def test_gradient_accumulation_is_one_step(self):
        trace = self.net("""
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    for _ in range(3):
        model(torch.ones(2, 3, 8, 8)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
""")
        self.assertEqual([step["samples"] for step in trace.steps], [6, 6])


class StepsByCallSlots(Steps):
    """The same tests in tier C."""

    def injected(self, output, **variables):
        return super().injected(output, RFINJECT_TIER="C", **variables)


if __name__ == "__main__":
    support.main()
