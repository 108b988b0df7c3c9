"""Tests, on real torch, that what the program computes, prints and compiles is what it would without the library."""

import platform
import unittest

import support

TORCH = support.torch_version() or (0, 0)

NET = """
import warnings
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 4), nn.Tanh())
        self.head = nn.Linear(4, 2)
    def forward(self, x):
        return self.head(self.body(x) + 1)
torch.manual_seed(1)
model = Net()
x = torch.ones(2, 3)
"""


# Ends the process at its next process_vm_readv, as strict sandboxes do (seccomp(2)).
SANDBOX = """
import ctypes, struct
READV = 310  # x86-64
def instruction(code, k, yes=0, no=0):
    return struct.pack("HBBI", code, yes, no, k)
text = ctypes.create_string_buffer(instruction(0x20, 0) + instruction(0x15, READV, 0, 1) + instruction(0x06, 0x80000000)
                                   + instruction(0x06, 0x7FFF0000))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 4, ctypes.addressof(text)))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0
"""


class FromTheStart(support.TestCase):
    """What can go wrong while the library comes into the process."""

    @unittest.skipUnless(platform.machine() == "x86_64", "the number of the system call is x86-64's")
    def test_a_sandbox_that_kills_for_a_system_call(self):
        result = self.both(SANDBOX + NET + """
for _ in range(2):
    model(x).sum().backward()
print(model.head.weight.grad.sum().item())
""")
        self.assert_all_attributed(result.trace)

    def test_nothing_is_to_be_seen(self):
        self.both(NET + """
import builtins, copy, gc, inspect, io, pickle, sys, threading
model(x).sum().backward()
Module = nn.Module
print(Module.__call__.__qualname__, sorted(vars(Module)), sorted(model.__dict__), repr(model))
from torch.nn.modules import module
print(module._global_forward_hooks, module._global_forward_pre_hooks, module._global_backward_hooks)
print(builtins.__build_class__, builtins.__import__, len(sys.meta_path), sorted(set(sys.modules) - {"_distutils_hack"}))
print(len(warnings.filters), threading.active_count(), sys.getprofile(), sys.gettrace(), torch.is_grad_enabled())
buffer = io.BytesIO()
torch.save(model.state_dict(), buffer)
print(len(buffer.getvalue()), pickle.loads(pickle.dumps(model))(x).tolist(), copy.deepcopy(model)(x).tolist())
print(inspect.signature(Module.__call__), inspect.signature(Net.forward), type(Net), Net.__subclasses__())
print(sorted(c.__name__ for c in Module.__subclasses__()))
print(torch._C._get_tracing_state(), torch.get_rng_state().sum())
""", same_stderr=True)


class Harmless(support.ForkedTestCase):
    def test_no_descriptor_of_the_program_is_taken(self):
        # The soft limit comes down after torch is there: loading it takes more descriptors than that.
        for limit in (16, 64, 200):
            result = self.both("""
import resource
""" + NET + """
resource.setrlimit(resource.RLIMIT_NOFILE, (%d, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
import os
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def descriptors():
    got = []
    try:
        while True:
            got.append(os.open("/dev/null", os.O_RDONLY))
    except OSError as error:
        number = error.errno
    for fd in got:
        os.close(fd)
    return len(got), number
for step in range(3):
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
    print(descriptors())
os.chdir("/")  # the trace is found again from anywhere
for step in range(3):
    model(x).sum().backward()
    optimizer.step()
""" % limit)
            self.assertEqual(result.trace.end["reason"], "exit")
            self.assertEqual(len(result.trace.steps), 6)

    def test_no_code_of_the_program_runs_because_of_us(self):
        # The program counts how often reading a module, its class, a parameter or an argument comes to its own code,
        # in every way in which that could happen.
        result = self.both(NET + """
from collections import Counter
taken = Counter()
class Meta(type):
    def __getattribute__(cls, name):
        taken["class " + name] += 1
        return super().__getattribute__(name)
class Odd(nn.Module, metaclass=Meta):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
    def __getattribute__(self, name):
        taken["module " + name] += 1
        return super().__getattribute__(name)
    @property
    def __class__(self):
        taken["__class__"] += 1
        return Odd
    def forward(self, x):
        return self.lin(x)
class Own(torch.Tensor):
    @staticmethod
    def __new__(cls, data):
        return torch.Tensor._make_subclass(cls, data, data.requires_grad)
    def __getattribute__(self, name):
        taken["tensor " + name] += 1
        return super().__getattribute__(name)
    @property
    def shape(self):
        taken["shape"] += 1
        return torch.Size([1])
    def numel(self):
        taken["numel"] += 1
        return super().numel()
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        taken["torch function"] += 1
        return super().__torch_function__(func, types, args, kwargs or {})
odd = Odd()
odd.register_parameter("own", nn.Parameter(torch.ones(3)))
nn.Module.__getattribute__(odd, "_parameters")["own"] = Own(torch.ones(3, requires_grad=True))
wrapped = nn.Sequential(odd, nn.ReLU())
optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.1)
for step in range(3):
    taken.clear()
    optimizer.zero_grad()
    wrapped(Own(torch.ones(2, 3))).sum().backward()
    optimizer.step()
    print(step, sorted(taken.items()))
""")
        self.assertIn("0.lin", result.trace.paths())

    def test_results_to_the_last_bit(self):
        self.both(NET + """
optimizer = torch.optim.Adam(model.parameters())
drop = nn.Dropout(0.5)
for step in range(5):
    optimizer.zero_grad()
    loss = drop(model(torch.randn(4, 3))).pow(2).sum()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
print([p.sum().item().hex() for p in model.parameters()], torch.rand(1).item().hex())
""", same_stderr=True)

    def test_modules_are_not_kept_alive(self):
        self.both(NET + """
import gc, weakref
refs = []
for _ in range(100):
    model = Net()
    model(x)
    refs.append(weakref.ref(model.head))
del model
gc.collect()
print(sum(ref() is not None for ref in refs))
class Gone(nn.Module):
    def forward(self, x):
        return x
Gone()(x)
ref = weakref.ref(Gone)
del Gone
gc.collect()
print(ref())
""")

    def test_trace_and_script(self):
        self.both(NET + """
traced = torch.jit.trace(model, x)
print(traced.graph, traced(x).tolist())
print(torch.jit.script(model).code)
import io
torch.onnx.utils  # importable, not exported here: it needs more packages
""")

    def test_fx(self):
        self.both(NET + """
import torch.fx
model(x)
graph = torch.fx.symbolic_trace(model)
print(graph.code, graph(x).tolist(), [node.target for node in graph.graph.nodes])
""")

    def test_functional_modes_of_the_users(self):
        self.both(NET + """
try:
    from torch.overrides import TorchFunctionMode
except ImportError:
    TorchFunctionMode = None
if TorchFunctionMode is not None and torch.__version__ >= "2":
    class Mode(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            print(getattr(function, "__name__", function))
            return function(*args, **(kwargs or {}))
    with Mode():
        model(x)
        Net()(x)
class Tensor(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        print(getattr(function, "__name__", function))
        return super().__torch_function__(function, types, args, kwargs or {})
model(x.as_subclass(Tensor))
""")

    def test_users_hooks_and_overridden_call(self):
        self.both(NET + """
model.body[0].register_forward_hook(lambda m, i, o: print("hook", tuple(o.shape)))
model.body[0].register_forward_pre_hook(lambda m, i: print("pre"))
class Loud(Net):
    def __call__(self, *args, **kwargs):
        print("called")
        return super().__call__(*args, **kwargs)
    def __getattr__(self, name):
        print("getattr", name) if name not in ("body", "head") else None
        return super().__getattr__(name)
model(x).sum().backward()
Loud()(x)
try:
    model(x, x)
except TypeError as error:
    print(error)
try:
    nn.Module()(x)
except NotImplementedError as error:
    print(error)
import traceback
class Bad(nn.Module):
    def forward(self, x):
        raise ValueError("bad")
try:
    nn.Sequential(Bad())(x)
except ValueError:
    print(traceback.format_exc())
""")

    @unittest.skipIf(TORCH < (2, 0), "torch.compile came with 2.0")
    def test_compile(self):
        for backend in ("eager", "aot_eager"):
            result = self.both(NET + """
import torch._dynamo
from torch._dynamo.utils import counters
compiled = torch.compile(model, backend=%r, fullgraph=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    optimizer.zero_grad()
    loss = compiled(x).sum()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
for key in ("stats", "frames", "graph_break", "recompiles"):
    print(key, dict(counters[key]))
print(model(x).tolist())
""" % backend, same_stderr=True)
            self.assertEqual(result.trace.layer("")["class_name"], "Net")
            self.assert_all_attributed(result.trace)

    @unittest.skipIf(TORCH < (2, 0), "torch.compile came with 2.0")
    def test_compiled_before_and_after_eager_calls(self):
        self.both(NET + """
import torch._dynamo
from torch._dynamo.utils import counters
model(x)
compiled = torch.compile(model, backend="eager", fullgraph=True)
for n in (2, 2, 5, 5):
    print(compiled(torch.ones(n, 3)).sum().item().hex())
class Late(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()
    def forward(self, x):
        return self.net(x) * 2
late = torch.compile(Late(), backend="eager")
print(late(x).tolist(), dict(counters["stats"]), dict(counters["graph_break"]))
explanation = torch._dynamo.explain(model)(x)
print(explanation.graph_count, explanation.graph_break_count)
""", same_stderr=True)

    @unittest.skipIf(TORCH < (2, 1), "torch.export came with 2.1")
    def test_export(self):
        self.both(NET + """
model(x)
program = torch.export.export(model, (x,))
print(program.graph, program.module()(x).tolist())
for _ in range(2):
    model(x).sum().backward()
""")


if __name__ == "__main__":
    support.main()
