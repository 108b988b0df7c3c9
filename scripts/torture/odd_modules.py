"""Trains 46 modules that are odd in a way of their own, and prints what came out: for scripts/torture/neighbours.

Each is what some program does to its modules: calls, attributes, classes, hooks and ends that a profiler might trip over. An
exception that a module raises is printed, too. Needs torch 1.13 or later; nothing here depends on time or chance.
"""

import abc
import collections
import contextlib
import copy
import dataclasses
import functools
import gc
import pickle
import sys
import threading
import weakref

import torch
import torch.fx
from torch import nn
from torch.utils import checkpoint

torch.set_num_threads(1)
KINDS = {}


def odd(function):
    KINDS[function.__name__] = function
    return function


def linear(*shape):
    torch.manual_seed(1)
    return nn.Linear(*(shape or (4, 4)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = linear(), linear()

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))


@odd
def plain():
    return Net()


@odd
def called_by_forward():
    net = Net()
    return lambda x: net.forward(x), net


@odd
def own_call():
    class Own(Net):
        def __call__(self, x):
            return super().__call__(2 * x)
    return Own()


@odd
def call_assigned_to_class():
    class Assigned(Net):
        pass
    Assigned.__call__ = lambda self, x: nn.Module.__call__(self, 3 * x)
    return Assigned()


@odd
def call_assigned_late():
    class Late(Net):
        pass
    net = Late()
    net(torch.ones(1, 4))
    Late.__call__ = lambda self, x: nn.Module.__call__(self, 5 * x)
    return net


@odd
def forward_assigned_to_object():
    net = Net()
    net.forward = lambda x: net.a(x) * 2
    return net


@odd
def forward_is_a_partial():
    net = Net()
    net.forward = functools.partial(lambda scale, x: net.a(x) * scale, 2)
    return net


@odd
def forward_is_a_property():
    class Property(Net):
        @property
        def forward(self):
            return lambda x: self.a(x)
    return Property()


@odd
def forward_is_static():
    class Static(nn.Module):
        inner = linear()

        @staticmethod
        def forward(x):
            return Static.inner(x)
    net = Static()
    return net, Static.inner


@odd
def getattribute_that_counts():
    class Counting(Net):
        count = 0

        def __getattribute__(self, name):
            type(self).count += 1
            return super().__getattribute__(name)
    net = Counting()
    return lambda x: net(x) + 0 * Counting.count, net, lambda: Counting.count


@odd
def getattr_that_makes_layers():
    class Making(nn.Module):
        def __getattr__(self, name):
            if name == "lazy":
                self.lazy = linear()
                return super().__getattr__("lazy")
            return super().__getattr__(name)

        def forward(self, x):
            return self.lazy(x)
    net = Making()
    net.lazy  # noqa: B018 (made here)
    return net


@odd
def setattr_that_refuses():
    class Refusing(Net):
        def __setattr__(self, name, value):
            if not isinstance(value, (nn.Module, nn.Parameter, dict, bool, set, type(None))):
                raise AttributeError(name)
            super().__setattr__(name, value)
    return Refusing()


@odd
def slots():
    class Slots(Net):
        __slots__ = ("more",)
    return Slots()


@odd
def metaclass():
    class Meta(type):
        def __call__(cls, *arguments):
            made = super().__call__(*arguments)
            made.stamp = 7
            return made

    class Made(Net, metaclass=Meta):
        pass
    return Made()


@odd
def abstract_base():
    class Base(nn.Module, abc.ABC):
        @abc.abstractmethod
        def forward(self, x):
            ...

    class Concrete(Base):
        def __init__(self):
            super().__init__()
            self.a = linear()

        def forward(self, x):
            return self.a(x)
    return Concrete()


@odd
def dataclass():
    @dataclasses.dataclass(eq=False)
    class Data(nn.Module):
        width: int = 4

        def __post_init__(self):
            super().__init__()
            self.a = linear(self.width, self.width)

        def forward(self, x):
            return self.a(x)
    return Data()


@odd
def equal_to_all():
    class Equal(Net):
        def __eq__(self, other):
            return True

        def __hash__(self):
            return 1
    return nn.Sequential(Equal(), Equal())


@odd
def unhashable():
    class Unhashable(nn.Module):
        __hash__ = None

        def forward(self, x):
            return x
    return nn.Sequential(linear(), nn.ReLU()), Unhashable()


@odd
def falsy():
    class Falsy(Net):
        def __bool__(self):
            return False

        def __len__(self):
            return 0
    return Falsy()


@odd
def name_that_is_no_text():
    net = Net()
    net.add_module("gr\u00fc\u00dfe \u202e", linear())
    return lambda x: list(net.children())[-1](net(x)), net


@odd
def repr_that_raises():
    class Silent(Net):
        def __repr__(self):
            raise RuntimeError("no")
    return Silent()


@odd
def class_name_that_raises():
    class Meta(type):
        def __getattribute__(cls, name):
            if name in ("__name__", "__qualname__"):
                raise RuntimeError("no")
            return super().__getattribute__(name)

    class Nameless(Net, metaclass=Meta):
        pass
    return Nameless()


@odd
def weak_only():
    holder = weakref.WeakValueDictionary()
    net = Net()
    holder["net"] = net
    return lambda x: holder["net"](x), net


@odd
def circle():
    net = Net()
    object.__setattr__(net, "parent", net)
    return net


@odd
def tied():
    net = Net()
    net.b = net.a
    return net


@odd
def shared_parameter():
    net = Net()
    net.b.weight = net.a.weight
    return net


@odd
def deep():
    net = linear()
    for _ in range(150):
        net = nn.Sequential(net)
    return net


@odd
def recursive():
    class Recursive(Net):
        def forward(self, x, left=20):
            return self.a(x) if left == 0 else self(x, left - 1)
    return Recursive()


@odd
def modules_made_in_forward():
    class Making(Net):
        def forward(self, x):
            return nn.Sequential(self.a, nn.ReLU(), nn.Dropout(0.0))(x)
    return Making()


@odd
def replaced_between_steps():
    net = Net()

    def run(x):
        net.b = copy.deepcopy(net.b)
        return net(x)
    return run, net


@odd
def generator_forward():
    class Generator(Net):
        def forward(self, x):
            yield self.a(x)
            yield self.b(x)
    net = Generator()
    return lambda x: sum(net(x)), net


@odd
def in_a_thread():
    net = Net()

    def run(x):
        results = []
        thread = threading.Thread(target=lambda: results.append(net(x)))
        thread.start()
        thread.join()
        return results[0]
    return run, net


@odd
def raising_sometimes():
    class Moody(Net):
        calls = 0

        def forward(self, x):
            Moody.calls += 1
            if Moody.calls % 2 == 1:
                raise ValueError("odd call")
            return super().forward(x)
    net = Moody()

    def run(x):
        with contextlib.suppress(ValueError):
            net(x)
        return net(x)
    return run, net


@odd
def leaving_by_system_exit():
    class Leaving(Net):
        def forward(self, x):
            raise SystemExit(3)
    net, other = Leaving(), Net()

    def run(x):
        try:
            net(x)
        except SystemExit as left:
            return other(x) * left.code
    return run, other


@odd
def forward_hooks():
    net = Net()
    net.a.register_forward_pre_hook(lambda module, arguments: (arguments[0] * 2,))
    net.a.register_forward_hook(lambda module, arguments, output: output + 1)
    return net


@odd
def hooks_that_go_away():
    net = Net()

    def once(module, arguments, output):
        handle.remove()
        return output * 3
    handle = net.b.register_forward_hook(once)
    return net


@odd
def backward_hooks():
    net = Net()
    net.a.register_full_backward_hook(lambda module, inputs, outputs: None)
    net.b.weight.register_hook(lambda gradient: gradient * 2)
    return net


@odd
def custom_function():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            return x * 2

        @staticmethod
        def backward(context, gradient):
            return gradient * 2
    net = Net()
    return lambda x: Twice.apply(net(x)), net


@odd
def checkpointed():
    net = Net()
    return lambda x: checkpoint.checkpoint(net, x.requires_grad_(), use_reentrant=False), net


@odd
def double_backward():
    net = Net()

    def run(x):
        x = x.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(net(x).square().sum(), x, create_graph=True)
        return gradient
    return run, net


@odd
def scripted():
    return torch.jit.script(Net())


@odd
def traced():
    return torch.jit.trace(Net(), torch.ones(1, 4))


@odd
def symbolic():
    return torch.fx.symbolic_trace(Net())


@odd
def pickled_and_copied():
    sys.modules[__name__].Net = Net
    return copy.deepcopy(pickle.loads(pickle.dumps(Net())))


@odd
def containers():
    return nn.Sequential(collections.OrderedDict(a=linear(), b=nn.Sequential(), c=nn.Identity()))


@odd
def gone_in_the_middle():
    net = Net()

    def run(x):
        other = Net()
        result = net(x) + other(x).detach()
        del other
        gc.collect()
        return result
    return run, net


def train(made):
    call, parameters, said = made, made, lambda: ""
    if isinstance(made, tuple):
        call, parameters = made[:2]
        said = made[2] if len(made) > 2 else said
        if isinstance(call, nn.Module) and not list(parameters.parameters()):
            parameters = call
    optimizer = torch.optim.SGD(parameters.parameters(), lr=0.01)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = call(torch.linspace(-1, 1, 8).reshape(2, 4)).square().sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item().hex())
    return losses, said()


def main():
    for name, make in KINDS.items():
        try:
            print(name, *train(make()))
        except Exception as error:  # the module's own, or torch's: what matters is that it is the same one
            print(name, type(error).__name__, str(error)[:200])
    print(len(KINDS), "modules")


main()
