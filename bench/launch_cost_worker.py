"""One training process of bench/launch_cost: launches empty kernels inside a layer's forward, in steps.

    launch_cost_worker.py LIBRARY [subscribe]      (bench/launch_loop.cc)

Reads lines "eager THREADS COUNT" and "graph NODES COUNT" from stdin. Each is a step: the launches, then a backward and an
optimizer's step of one small layer. It answers with the processor time that a launch took on its thread, ns. With
`subscribe` CUPTI calls an empty function at each launch. It knows nothing about rfinject.
"""
import ctypes
import sys

import torch


class Launching(torch.nn.Module):
    def __init__(self, library):
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)
        self.calls = {"eager": library.launch_loop_eager, "graph": library.launch_loop_graph}
        for call in self.calls.values():
            call.restype = ctypes.c_double
            call.argtypes = [ctypes.c_int, ctypes.c_int]

    def forward(self, inputs, kind, size, count):
        outputs = self.layer(inputs)
        self.ns = self.calls[kind](size, count)
        return outputs


def main():
    library = ctypes.CDLL(sys.argv[1])
    model = Launching(library).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    inputs = torch.randn(8, 8).cuda()
    error = library.launch_loop_open()
    if error:
        sys.exit(f"the driver cannot load an empty kernel: error {error}")
    error = library.launch_loop_subscribe() if sys.argv[2:] == ["subscribe"] else 0
    if error:
        sys.exit(f"CUPTI cannot be subscribed to: error {error}")
    for line in sys.stdin:
        kind, size, count = line.split()
        optimizer.zero_grad()
        model(inputs, kind, int(size), int(count)).sum().backward()
        optimizer.step()
        if model.ns < 0:
            sys.exit(f"a launch failed: {line}")
        print(model.ns, flush=True)


if __name__ == "__main__":
    main()
