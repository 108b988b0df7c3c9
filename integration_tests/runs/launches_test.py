#!/usr/bin/env python3
"""Operators run once are counted once, whatever runs around them.

    launches_test.py [unittest arguments]     see programs.py for the environment

What runs is counted by torch's own TorchDispatchMode, in a process without rfinject: it sees what arrives below
autograd, autocast and vmap.
"""
import collections
import json
import unittest

import torch

import programs
from prefork import Prefork

# What torch counts as one operator and rfinject by the kernel that it runs; underscores at the end are left out.
KERNELS = {"stack": "cat", "embedding": "index_select", "clone": "copy", "_to_copy": "copy", "new_zeros": "zero",
           "zeros": "zero", "ger": "mul"}

# Operators by name, with their operands; a list is what a model gives to torch.cat and the like. F is
# torch.nn.functional. The operands' sizes are all different where the operator allows it.
CASES = r"""
mm                 torch.mm(x(5, 7), x(7, 3))
bmm                torch.bmm(x(2, 5, 7), x(2, 7, 3))
addmm              torch.addmm(x(3), x(5, 7), x(7, 3))
baddbmm            torch.baddbmm(x(2, 5, 3), x(2, 5, 7), x(2, 7, 3))
addbmm             torch.addbmm(x(5, 3), x(2, 5, 7), x(2, 7, 3))
mv                 torch.mv(x(5, 7), x(7))
dot                torch.dot(x(7), x(7))
matmul_vector      torch.matmul(x(5, 7), x(7))
matmul             torch.matmul(x(5, 7), x(7, 3))
matmul_batched     torch.matmul(x(2, 5, 7), x(7, 3))
matmul_twice       torch.matmul(torch.matmul(x(5, 7), x(7, 3)), x(3, 4))
same               torch.mm(*[x(6, 6)] * 2)
einsum             torch.einsum("bij,bjk->bik", x(2, 5, 7), x(2, 7, 3))
chain              torch.linalg.multi_dot([x(5, 7), x(7, 3), x(3, 2)])
linear             F.linear(x(5, 7), x(3, 7), x(3))
linear_no_bias     F.linear(x(5, 7), x(3, 7))
conv1d             F.conv1d(x(2, 3, 9), x(4, 3, 3))
conv2d             F.conv2d(x(2, 3, 9, 9), x(4, 3, 3, 3), x(4))
conv_transpose2d   F.conv_transpose2d(x(2, 3, 5, 5), x(3, 4, 3, 3))
add                x(5, 7) + x(7)
mul                x(5, 7) * x(5, 7)
square             (lambda a: a * a)(x(5, 7))
div                x(5, 7) / x(5, 7)
pow                x(5, 7) ** 3
exp                x(5, 7).exp()
log                x(5, 7).log()
rsqrt              x(5, 7).rsqrt()
tanh               x(5, 7).tanh()
sigmoid            x(5, 7).sigmoid()
relu               F.relu(x(5, 7))
gelu               F.gelu(x(5, 7))
silu               F.silu(x(5, 7))
softplus           F.softplus(x(5, 7))
addcmul            torch.addcmul(x(5, 7), x(5, 7), x(5, 7))
lerp               torch.lerp(x(5, 7), x(5, 7), 0.5)
where              torch.where(x(5, 7) > 1, x(5, 7), x(5, 7))
cat                torch.cat([x(5, 7), x(2, 7)])
stack              torch.stack([x(5, 7), x(5, 7)])
cumsum             x(5, 7).cumsum(1)
sum                x(5, 7).sum(1)
mean               x(5, 7).mean(1)
softmax            F.softmax(x(5, 7), 1)
log_softmax        F.log_softmax(x(5, 7), 1)
layer_norm         F.layer_norm(x(5, 7), (7,), x(7), x(7))
group_norm         F.group_norm(x(2, 4, 5), 2, x(4), x(4))
avg_pool2d         F.avg_pool2d(x(2, 3, 8, 8), 2)
max_pool2d         F.max_pool2d(x(2, 3, 8, 8), 2)
interpolate        F.interpolate(x(2, 3, 4, 4), scale_factor=2, mode="bilinear", align_corners=False)
mse                F.mse_loss(x(5, 7), x(5, 7), reduction="none")
smooth_l1          F.smooth_l1_loss(x(5, 7), x(5, 7), reduction="none")
index_select       torch.index_select(x(5, 7), 0, indices)
gather             torch.gather(x(5, 7), 1, indices[:, None])
embedding          F.embedding(indices, x(5, 7))
"""

# Each case is a layer, so that what it runs is told from what the others run. A tensor that a case is given is a
# parameter of its layer. `around` is what runs around it, `make` makes an operand.
PROGRAM = r"""
import contextlib, functools, json, sys
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

indices = torch.tensor([0, 2, 1])

class Case(nn.Module):
    def __init__(self, text):
        super().__init__()
        self.operands = nn.ParameterList()
        def x(*sizes):
            self.operands.append(nn.Parameter(torch.linspace(0.5, 1.5, torch.Size(sizes).numel()).view(sizes)))
            return self.operands[-1]
        self.call = eval("lambda x: " + text)
        with torch.no_grad():
            self.call(x)

    def forward(self, *operands):
        rest = iter(operands)
        return self.call(lambda *sizes: next(rest))

@functools.lru_cache(None)
def root():
    net = nn.ModuleDict({name: Case(text) for name, text in CASES.items()})
    net.forward = lambda: [run(name, case) for name, case in net.items()]
    return net

def run(name, case):
    operands = [make(operand, number) for number, operand in enumerate(case.operands)]
    with counting(name):
        result = call(case, *operands)
    if backward:
        case.zero_grad(set_to_none=True)
        gradient = torch.ones_like(result)
        with counting(name):
            result.backward(gradient)

def storages(values):
    found = set()
    for x in (x for y in values for x in (y if isinstance(y, (list, tuple)) else [y])):
        if isinstance(x, torch.Tensor) and not x._is_zerotensor():
            found.add((x.untyped_storage() if hasattr(x, "untyped_storage") else x.storage())._cdata)
    return found

# Whether nothing runs for it: a view, memory that is not written, or zeros that lie nowhere.
def is_free(name, operands, result):
    if isinstance(result, torch.Tensor) and result._is_zerotensor():
        return True
    made = storages([result])
    return "empty" in name or name == "scalar_tensor" or (not name.endswith("_") and made <= storages(operands))

class Counter(TorchDispatchMode):
    def __init__(self, name):
        super().__init__()
        self.calls = counts.setdefault(name, {})
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if is_free(name, args, result):
            return result
        self.calls[name] = self.calls.get(name, 0) + 1
        return result

counts = {}
make = lambda operand, number: operand
call = lambda case, *operands: case(*operands)
backward = False
around = contextlib.nullcontext
counting = Counter if COUNT else lambda name: contextlib.nullcontext()
SETUP
net = root()
with around():
    net()
    net()
if COUNT:
    print(json.dumps(counts))
"""


# What runs around all of them.
WRAPPERS = {
    "nothing": "",
    "backward": "backward = True",
    "no_grad": "around = torch.no_grad",
    "inference_mode": "around = torch.inference_mode",
    "deterministic": "torch.use_deterministic_algorithms(True); backward = True",
    "autocast": "around = lambda: torch.autocast('cpu', torch.bfloat16)",
    "autocast_backward": "around = lambda: torch.autocast('cpu', torch.bfloat16); backward = True",
    "autocast_half": "around = lambda: torch.autocast('cpu', torch.bfloat16); make = lambda x, number: x.bfloat16()",
    "autocast_off": """
def around():
    stack = contextlib.ExitStack()
    stack.enter_context(torch.autocast("cpu", torch.bfloat16))
    stack.enter_context(torch.autocast("cpu", enabled=False))
    return stack
""",
    "autocast_without_cache": "around = lambda: torch.autocast('cpu', torch.bfloat16, cache_enabled=False)",
    # What models are, and tools do: the class is the program's own, nothing else is.
    "subclass": """
class Named(torch.Tensor):
    pass
make = lambda x, number: torch.Tensor._make_subclass(Named, x.detach())
""",
    "subclass_dispatch": """
class Same(torch.Tensor):
    __torch_function__ = torch._C._disabled_torch_function_impl
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return func(*tree_map(plain, args), **tree_map(plain, kwargs or {}))
plain = lambda x: x.plain if isinstance(x, Same) else x
def make(x, number):
    made = torch.Tensor._make_subclass(Same, x.detach())
    made.plain = x.detach()
    return made
""",
    # A subclass without memory of its own, as distributed and quantised tensors are.
    "subclass_wrapper": """
class Wrapped(torch.Tensor):
    __torch_function__ = torch._C._disabled_torch_function_impl
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return func(*tree_map(plain, args), **tree_map(plain, kwargs or {}))
plain = lambda x: x.plain if isinstance(x, Wrapped) else x
def make(x, number):
    made = torch.Tensor._make_wrapper_subclass(Wrapped, x.size(), strides=x.stride(), dtype=x.dtype)
    made.plain = x.detach()
    return made
""",
    "mode": """
class Passing(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))
around = Passing
""",
    "forward_mode": """
from torch.autograd import forward_ad
around = forward_ad.dual_level
make = lambda x, number: forward_ad.make_dual(x.detach(), torch.ones_like(x))
""",
    "forward_mode_of_one_operand": """
from torch.autograd import forward_ad
around = forward_ad.dual_level
make = lambda x, number: forward_ad.make_dual(x.detach(), torch.ones_like(x)) if number == 0 else x
""",
    "forward_mode_of_itself": """
from torch.autograd import forward_ad
around = forward_ad.dual_level
make = lambda x, number: forward_ad.make_dual(x.detach(), x.detach())
""",
    "vmap": """
make = lambda x, number: torch.stack([x.detach(), x.detach()])
call = lambda case, *operands: torch.vmap(case)(*operands)
""",
}


# Wrappers below which the same runs as below another one, and where torch's counter does not count it: it takes the
# operators of inference mode before they are decomposed, and a result of a subclass cannot be made under it.
AS = {"inference_mode": "no_grad", "subclass": "nothing", "subclass_dispatch": "nothing",
      "subclass_wrapper": "nothing"}

# In forward mode only products are counted (docs/method/ESTIMATOR.md).
PRODUCTS = {"dot", "mm", "addmm", "bmm", "baddbmm", "mv", "convolution"}


def kernels(calls):
    """How often each kernel runs, of (operator, count) pairs."""
    sums = collections.Counter()
    for name, count in calls:
        name = name.rstrip("_")
        sums[KERNELS.get(name, name)] += count
    return dict(sums)


class Launches(programs.ForkedTestCase):
    cases = dict(line.split(None, 1) for line in CASES.strip().splitlines())

    @classmethod
    def setUpClass(cls):
        cls.counter = None
        cls.counts = {}

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        if cls.counter is not None:
            cls.counter.close()

    def program(self, wrapper, count):
        setup = f"CASES = {self.cases!r}\nCOUNT = {count}\n"
        return setup + PROGRAM.replace("SETUP", WRAPPERS[wrapper])

    def counted(self, wrapper):
        """Kernels by case, as torch counts them."""
        cls = type(self)
        if cls.counter is None:
            cls.counter = Prefork([programs.PYTHON], self.environment)
        if wrapper not in cls.counts:
            _, result = self.counter.run(str(self.folder / self.write("count.py", self.program(wrapper, True))))
            self.assertEqual(result.returncode, 0, result.stderr)
            found = json.loads(result.stdout)
            cls.counts[wrapper] = {case: kernels(found.get(case, {}).items()) for case in self.cases}
        return cls.counts[wrapper]

    def seen(self, wrapper):
        """Kernels by case, as rfinject counts them."""
        calls = collections.defaultdict(list)
        for row in self.profile(self.program(wrapper, False), "--by", "kernel")["rows"]:
            calls[row["layer"]].append((row["op"].removeprefix("aten::"), row["launches"]))
        return {case: kernels(calls[case]) for case in self.cases}

    def check(self, wrapper, only=None):
        expected, seen = self.counted(AS.get(wrapper, wrapper)), self.seen(wrapper)
        for case in self.cases:
            with self.subTest(case=case):
                found, wanted = ({name: count for name, count in of[case].items() if only is None or name in only}
                                 for of in (seen, expected))
                self.assertEqual(found, wanted)
        self.assertGreater(sum(map(len, expected.values())), len(self.cases) // 4)


def add_test(wrapper):
    def test(self):
        if wrapper == "vmap" and not hasattr(torch, "vmap"):
            self.skipTest("note: this torch has no vmap")
        self.check(wrapper, PRODUCTS if wrapper.startswith("forward_mode") else None)

    setattr(Launches, f"test_{wrapper}", test)


for name in WRAPPERS:
    add_test(name)

if __name__ == "__main__":
    unittest.main()
