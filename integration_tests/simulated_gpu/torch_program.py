"""A training program whose modules launch simulated kernels: forward on the main thread, backward in autograd.

It prints one line that must not depend on whether it is measured, nor on what fails in CUPTI.
    torch_program.py SIMULATOR_FOLDER [FUNCTION CODE EVERY]
"""

import ctypes
import os
import sys

folder = sys.argv[1]
cuda = ctypes.CDLL(os.path.join(folder, "driver", "libcuda.so.1"))
ctypes.CDLL(os.path.join(folder, "cupti13", "libcupti.so.13"))  # as torch brings one
cuda.sim_violations.restype = ctypes.c_char_p
cuda.sim_calls.restype = ctypes.c_uint64


class Metric(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_double)]


class Kernel(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("ns", ctypes.c_uint64), ("metrics", ctypes.POINTER(Metric)),
                ("metric_count", ctypes.c_size_t)]


def kernel(name, ns, **values):
    metrics = (Metric * len(values))(*[Metric(key.replace("__SUM", ".sum").encode(), value)
                                       for key, value in values.items()])
    return Kernel(name.encode(), ns, metrics, len(values))


TF32 = "sm__ops_path_tensor_src_tf32_dst_fp32_sparsity_off__SUM"
FORWARD = kernel("simulated_forward", 5000, dram__bytes_read__SUM=100, dram__bytes_write__SUM=28, **{TF32: 4096})
BACKWARD = kernel("simulated_backward", 9000, dram__bytes_read__SUM=200, **{TF32: 8192})
context = ctypes.c_void_p()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
cuda.cuCtxSetCurrent(context)
if len(sys.argv) > 2:
    cuda.sim_fail(sys.argv[2].encode(), int(sys.argv[3]), int(sys.argv[4]))

import torch  # noqa: E402

refused = 0


def launch(which):
    global refused
    cuda.cuCtxSetCurrent(context)
    refused += cuda.cuLaunchKernel(ctypes.byref(which), 4, 1, 1, 128, 1, 1, 0, None, None, None) != 0


class Work(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        launch(FORWARD)
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        launch(BACKWARD)
        return gradient * 2


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((4,), 0.5))

    def forward(self, x):
        return Work.apply(x * self.weight)


torch.manual_seed(0)
model = torch.nn.Sequential(Layer(), Layer(), Layer())
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loss = torch.zeros(())
for step in range(40):
    optimizer.zero_grad()
    loss = model(torch.ones(4)).sum()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.6f} refused {refused}")
print(cuda.sim_violations().decode(), end="", file=sys.stderr)
