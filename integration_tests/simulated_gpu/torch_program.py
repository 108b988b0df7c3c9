"""A training program whose modules launch simulated kernels: forward on the main thread, backward in autograd, in every
second step on a thread of its own; each layer on a stream of its own.

It prints one line that must not depend on whether it is measured, nor on what fails in CUPTI.
    torch_program.py SIMULATOR_FOLDER CHIP [FUNCTION CODE EVERY]
"""

import ctypes
import os
import sys
import threading

folder, chip = sys.argv[1:3]
cuda = ctypes.CDLL(os.path.join(folder, "driver", "libcuda.so.1"))
# A CUPTI as torch brings one. Builds of torch whose CUDA still knows a V100 bring CUPTI 12.x.
CUPTI = {"GV100": "cupti124/libcupti.so.12"}
ctypes.CDLL(os.path.join(folder, CUPTI.get(chip, "cupti13/libcupti.so.13")))
cuda.sim_violations.restype = ctypes.c_char_p
cuda.sim_calls.restype = ctypes.c_uint64


class Metric(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_double)]


class Kernel(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("ns", ctypes.c_uint64), ("metrics", ctypes.POINTER(Metric)),
                ("metric_count", ctypes.c_size_t), ("waits_for", ctypes.c_void_p)]


def kernel(name, ns, **values):
    metrics = (Metric * len(values))(*[Metric(key.replace("__SUM", ".sum").encode(), value)
                                       for key, value in values.items()])
    return Kernel(name.encode(), ns, metrics, len(values))


# The metrics that count work on tensor cores, by chip; V100's know fp16 only.
TENSOR, MAJOR = {
    "GV100": ("sm__ops_path_tensor_src_fp16_dst_fp32__SUM", 7),
    "GA100": ("sm__ops_path_tensor_src_tf32_dst_fp32_sparsity_off__SUM", 8),
    "GH100": ("sm__ops_path_tensor_op_hgmma_src_tf32_dst_fp32_sparsity_off__SUM", 9),
}[chip]
cuda.sim_set_chip(chip.encode(), MAJOR, 0)
SCALAR = "smsp__sass_thread_inst_executed_op_ffma_pred_on__SUM"
FORWARD = kernel("simulated_forward", 5000, dram__bytes_read__SUM=100, dram__bytes_write__SUM=28,
                 **{TENSOR: 4096, SCALAR: 32})
BACKWARD = kernel("simulated_backward", 9000, dram__bytes_read__SUM=200, **{TENSOR: 8192, SCALAR: 64})
context = ctypes.c_void_p()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
cuda.cuCtxSetCurrent(context)
if len(sys.argv) > 3:
    cuda.sim_fail(sys.argv[3].encode(), int(sys.argv[4]), int(sys.argv[5]))

import torch  # noqa: E402

refused = 0


def launch(which, stream):
    global refused
    cuda.cuCtxSetCurrent(context)
    refused += cuda.cuLaunchKernel(ctypes.byref(which), 4, 1, 1, 128, 1, 1, 0, ctypes.c_void_p(stream), None, None) != 0


class Work(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, stream):
        ctx.stream = stream
        launch(FORWARD, stream)
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        launch(BACKWARD, ctx.stream)
        return gradient * 2, None


class Layer(torch.nn.Module):
    def __init__(self, stream):
        super().__init__()
        self.stream = stream
        self.weight = torch.nn.Parameter(torch.full((4,), 0.5))

    def forward(self, x):
        return Work.apply(x * self.weight, self.stream)


STEPS = 600
torch.manual_seed(0)
model = torch.nn.Sequential(Layer(16), Layer(32), Layer(48))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loss = torch.zeros(())
guest = ctypes.CDLL(os.path.join(folder, "libsim_guest.so")) if os.environ.get("GUEST") else None
for step in range(STEPS):
    if guest and step == STEPS // 3:
        print("guest", guest.sim_guest_begin(), end=" ")
        second = ctypes.c_void_p()
        cuda.cuCtxCreate_v2(ctypes.byref(second), 0, 0)
        cuda.cuCtxDestroy_v2(second)
        cuda.cuCtxSetCurrent(context)
        print(guest.sim_guest_contexts())
    if guest and step == STEPS // 3 + 9:
        if "rfinject" in os.environ.get("LD_PRELOAD", ""):
            assert guest.sim_guest_domain() == 27  # CUPTI_ERROR_NOT_SUPPORTED
        print("guest's end", guest.sim_guest_end())
    optimizer.zero_grad()
    loss = model(torch.ones(4)).sum()
    if step % 2 == 0:
        loss.backward()
    else:
        thread = threading.Thread(target=loss.backward)
        thread.start()
        thread.join()
    optimizer.step()
print(f"loss {loss.item():.6f} refused {refused}")
print(cuda.sim_violations().decode(), end="", file=sys.stderr)
