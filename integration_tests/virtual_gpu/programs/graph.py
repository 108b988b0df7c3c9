"""A step that is captured launches on every replay what it launched when it was run."""
import ctypes

import torch

import resnet_step

launches = ctypes.CDLL("libcuda.so.1").rfinject_virtual_gpu_launches
launches.restype = ctypes.c_uint64
in_a_step = 0  # of the last one that was run


def counted_step():
    global in_a_step
    before = launches()
    resnet_step.step()
    in_a_step = launches() - before


graph = resnet_step.capture(3, counted_step)
before = launches()
for _ in range(5):
    graph.replay()
torch.cuda.synchronize()
# PyTorch 2.6 writes the seed and the offset of its random numbers before each replay, with a kernel each.
assert launches() - before in (5 * in_a_step, 5 * (in_a_step + 2)), (launches() - before, in_a_step)
try:
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        resnet_step.images.sum().item()
    raise SystemExit("a capture must not survive .item()")
except RuntimeError:
    print("graph ok")
