"""oracle.py OUT PROGRAM ARGUMENTS...: runs a program on the virtual GPU, without rfinject, and writes what was launched.

It is an independent answer to "which layer launched that": the driver's own sequence of launches, with marks that
PyTorch's public hooks set. Forward: hooks around every module. Backward: when a module has returned, the autograd nodes
that its result has and its arguments had not are its own, and each gets a hook that says so when it runs. Nothing here
counts nodes, as rfinject does.

What is written, as JSON, is what came after the first step of an optimizer, where the hardware source begins: a list of
[model, layer, phase, kernel, grid, launches].
"""
import collections
import ctypes
import json
import runpy
import sys
import threading

import torch
from torch.nn.modules import module as modules
from torch.optim import optimizer as optimizers

NO_LAYER = (None, None)


class Launch(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3),
                ("shared", ctypes.c_uint), ("device", ctypes.c_int), ("stream", ctypes.c_uint64),
                ("flop", ctypes.c_double), ("bytes", ctypes.c_double)]


# The first member of an observer is told of each kernel; what else could be told is not wanted.
OnLaunch = ctypes.CFUNCTYPE(None, ctypes.POINTER(Launch))


class Observer(ctypes.Structure):
    _fields_ = [("launch", OnLaunch), ("rest", ctypes.c_void_p * 8)]


class Thread(threading.local):
    def __init__(self):
        self.calls = []       # the modules being called, outermost first
        self.node = None      # whose autograd node runs, or ran last: a pair (model, layer)
        self.optimizer = False


here = Thread()
wrapped = None                # the root in a DataParallel: (class, "")
names = {}                    # module: (class of the root, path)
owned = set()                 # nodes that have an owner; they are kept, so that no other one gets their address
launches = collections.Counter()
recording = False


def name_of(module):
    global wrapped
    if module not in names:
        root = module
        if isinstance(module, (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)):
            root = module.module
            wrapped = names[module] = (type(root).__name__, "")
        for path, part in root.named_modules():
            names[part] = (type(root).__name__, path)
    return names[module]


def tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors(part)
    elif isinstance(value, dict):
        yield from tensors(list(value.values()))


def own(value, owner):
    """Gives the nodes behind `value` that have no owner yet this one."""
    todo = [tensor.grad_fn for tensor in tensors(value)]
    while todo:
        node = todo.pop()
        if node is None or node in owned:
            continue
        owned.add(node)
        # This node's results are the weights of all replicas, and it belongs to the wrapper.
        if type(node).__name__ == "BroadcastBackward":
            owner = wrapped
        node.register_prehook(lambda gradients, owner=owner: setattr(here, "node", owner))
        todo += [before for before, _ in node.next_functions]


def innermost():
    return name_of(here.calls[-1]) if here.calls else NO_LAYER


def enter(module, arguments):
    own(arguments, innermost())
    name_of(module)
    here.calls.append(module)


def leave(module, arguments, result):
    own(result, name_of(module))
    here.calls.pop()


def backward(run):
    def marked(values, *arguments, **options):
        own(values, NO_LAYER)
        run(values, *arguments, **options)
        here.node = None
    return marked


def begin_step(*_):
    here.optimizer = True


def end_step(*_):
    global recording
    here.optimizer = False
    recording = True


def site():
    if here.optimizer:
        return NO_LAYER + ("optimizer",)
    in_backward = torch._C._current_graph_task_id() != -1
    if here.calls:
        return innermost() + ("recompute" if in_backward else "forward",)
    return (here.node or NO_LAYER) + ("backward",) if in_backward else NO_LAYER + ("other",)


def on_launch(launch):
    if recording:
        model, layer, phase = site()
        name = launch.contents.name.decode()
        if "ncclDevKernel" in name:
            phase = "communication"
        launches[model, layer, phase, name, tuple(launch.contents.grid)] += 1


observer = Observer(launch=OnLaunch(on_launch))  # as long as the process: nothing ends the observing


def main():
    global recording
    out, program = sys.argv[1:3]
    sys.argv = sys.argv[2:]
    sys.path.insert(0, program.rpartition("/")[0])
    modules.register_module_forward_pre_hook(enter)
    modules.register_module_forward_hook(leave, always_call=True)  # recomputation ends with an exception
    optimizers.register_optimizer_step_pre_hook(begin_step)
    optimizers.register_optimizer_step_post_hook(end_step)
    torch.autograd.backward = backward(torch.autograd.backward)
    ctypes.CDLL("libcuda.so.1").rfinject_virtual_gpu_observe(ctypes.byref(observer))
    runpy.run_path(program, run_name="__main__")
    recording = False
    with open(out, "w") as file:
        json.dump([list(key) + [count] for key, count in launches.items()], file)


main()
