"""Small training programs with known work, for scripts/gpu_probe. They know nothing of rfinject.

    workload.py NAME [--steps N] [--size N] [--dtype T] [--at STEP] [--device cuda|SIMULATOR_FOLDER] [--log FILE]

NAME: train      layers of several sizes, deterministic
      gemm       one bias-free Linear(SIZE, SIZE)
      stream     one elementwise multiplication over SIZE numbers: 8 bytes of DRAM traffic each in the forward
      profiler   train, with torch.profiler around the middle third of the steps
      capture    train, where each step of the middle third is captured into a CUDA graph, optimizer and all
      reset      train, with the device reset in the middle of step AT
      ranks      train, in a process group of two (started by torchrun)

The log has one JSON object a line: {"step", "loss" (hexadecimal, exact), "ns" of the step, "free" bytes of the device,
"forward_ns" by CUDA events}. With a simulator's folder as device, modules launch simulated kernels instead.
"""

import argparse
import ctypes
import json
import os
import re
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("name", choices=["train", "gemm", "stream", "profiler", "capture", "reset", "ranks"])
parser.add_argument("--steps", type=int, default=400)
parser.add_argument("--size", type=int, default=4096)
parser.add_argument("--batch", type=int, default=256)
parser.add_argument("--dtype", choices=["fp32", "tf32", "fp16", "bf16"], default="tf32")
parser.add_argument("--at", type=int, default=20)
parser.add_argument("--device", default="cuda")
parser.add_argument("--log")
options = parser.parse_args()
simulated = options.device != "cuda"
if not simulated:
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # else cuBLAS is not deterministic


class Simulator:
    """The simulated driver of integration_tests/simulated_gpu: kernels with known counts."""

    TENSOR = {"tf32": ["sm__ops_path_tensor_src_tf32_dst_fp32_sparsity_off.sum"],
              "bf16": ["sm__ops_path_tensor_src_bf16_dst_fp32_sparsity_off.sum"],
              "fp16": ["sm__ops_path_tensor_src_fp16_dst_fp32_sparsity_off.sum"]}

    class Metric(ctypes.Structure):
        _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_double)]

    class Kernel(ctypes.Structure):
        pass

    Kernel._fields_ = [("name", ctypes.c_char_p), ("ns", ctypes.c_uint64), ("metrics", ctypes.POINTER(Metric)),
                       ("metric_count", ctypes.c_size_t), ("waits_for", ctypes.c_void_p)]

    def __init__(self, folder):
        self.cuda = ctypes.CDLL(os.path.join(folder, "driver", "libcuda.so.1"))
        ctypes.CDLL(os.path.join(folder, os.environ.get("SIM_CUPTI", "cupti13/libcupti.so.13")))
        self.context = ctypes.c_void_p()
        assert self.cuda.cuInit(0) == 0
        assert self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(self.context), 0) == 0
        self.cuda.cuCtxSetCurrent(self.context)
        self.kept = {}

    def launch(self, name, flop, dtype, dram_bytes):
        found = self.kept.get((name, flop))
        if found is None:
            counts = {"dram__bytes_read.sum": dram_bytes / 2, "dram__bytes_write.sum": dram_bytes / 2}
            for metric in self.TENSOR.get(dtype, []):
                counts[metric] = flop
            if dtype == "fp32":
                counts["smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"] = flop / 2
            metrics = (self.Metric * len(counts))(*[self.Metric(key.encode(), value) for key, value in counts.items()])
            found = self.Kernel(name.encode(), 20000, metrics, len(counts))
            self.kept[(name, flop)] = found
        self.cuda.cuCtxSetCurrent(self.context)
        self.cuda.cuLaunchKernel(ctypes.byref(found), 4, 1, 1, 128, 1, 1, 0, None, None, None)

    def free(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def allocate(self, size):
        address = ctypes.c_uint64()
        assert self.cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)) == 0
        return address

    def reset(self):
        self.cuda.cuCtxDestroy_v2(self.context)


simulator = Simulator(options.device) if simulated else None

import torch  # noqa: E402

if not simulated and not torch.cuda.is_available():
    sys.exit("torch sees no GPU")
torch.manual_seed(0)
torch.backends.cudnn.benchmark = False
torch.use_deterministic_algorithms(not simulated)
torch.backends.cuda.matmul.allow_tf32 = options.dtype == "tf32"
torch.backends.cudnn.allow_tf32 = options.dtype == "tf32"
DTYPES = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
dtype = torch.float32 if simulated else DTYPES[options.dtype]


class SimulatedWork(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, name, flop, kind, dram_bytes):
        ctx.arguments = (name, flop, kind, dram_bytes)
        simulator.launch("forward_" + name, flop, kind, dram_bytes)
        return x * 1.0

    @staticmethod
    def backward(ctx, gradient):
        name, flop, kind, dram_bytes = ctx.arguments
        simulator.launch("backward_" + name, 2 * flop, kind, 2 * dram_bytes)
        return gradient, None, None, None, None


class Linear(torch.nn.Module):
    """A Linear that only launches the kernel that a Linear of this size would."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((outputs, inputs), 0.001))

    def forward(self, x):
        outputs, inputs = self.weight.shape
        y = SimulatedWork.apply(x, "gemm_%d_%d" % (inputs, outputs), float(2 * len(x) * inputs * outputs),
                                options.dtype, 4.0 * inputs * outputs)
        return y[:, :1].expand(-1, outputs) * self.weight[0, 0]


class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = torch.nn.Parameter(torch.tensor(1.5))

    def forward(self, x):
        if simulated:
            return SimulatedWork.apply(x * self.factor, "scale", 0.0, "none", 8.0 * options.size)
        return x * self.factor


def linear(inputs, outputs):
    return Linear(inputs, outputs) if simulated else torch.nn.Linear(inputs, outputs, bias=False)


if options.name == "stream":
    model = torch.nn.Sequential(Scale())
    data = torch.ones(4 if simulated else options.size)
elif options.name == "gemm":
    model = torch.nn.Sequential(linear(options.size, options.size))
    data = torch.randn(options.size, options.size)
else:
    unit = options.size // 8
    widths = [unit, 2 * unit, 4 * unit, 2 * unit, unit]
    layers = []
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [linear(inputs, outputs), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers)
    data = torch.randn(options.batch, unit)
rank = int(os.environ.get("LOCAL_RANK", "0"))
device = "cpu" if simulated else "cuda:%d" % rank
model = model.to(device=device, dtype=dtype)
data = data.to(device=device, dtype=dtype)
inner = model
if options.name == "ranks":
    torch.distributed.init_process_group("gloo" if simulated else "nccl")
    if not simulated:
        torch.cuda.set_device(rank)
    model = torch.nn.parallel.DistributedDataParallel(model)
if options.name == "capture" and not simulated:
    optimizer = torch.optim.Adam(inner.parameters(), lr=1e-6, capturable=True)
else:
    optimizer = torch.optim.SGD(inner.parameters(), lr=1e-6)
log = open(options.log, "w", encoding="utf-8") if options.log else None


def reset_device():
    if simulated:
        simulator.reset()
        return
    with open("/proc/self/maps", encoding="utf-8") as maps:
        paths = re.findall(r"/\S*libcudart\S*\.so\S*", maps.read())
    print("cudaDeviceReset returned", ctypes.CDLL(paths[0]).cudaDeviceReset(), flush=True)


def one_step(step):
    began = time.monotonic_ns()
    record = {"step": step}
    optimizer.zero_grad()
    if not simulated:
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
    output = model(data)
    if not simulated:
        end.record()
    loss = output.float().sum() * 1e-6
    if options.name == "reset" and step == options.at:
        reset_device()
        print("reset in step", step, flush=True)
        os._exit(0)  # torch's own teardown does not survive a reset device
    loss.backward()
    if not simulated and options.name == "train" and step % 10 == 5:
        torch.empty(1 << 28, dtype=torch.uint8, device=device)  # gone at once: only the peak knows of it
        torch.cuda.empty_cache()
    optimizer.step()
    if simulated:
        workspace = simulator.allocate(1 << 20)
        simulator.cuda.cuMemFree_v2(workspace)
        record["free"], record["total"], record["forward_ns"] = *simulator.free(), 20000.0
        record["asking_ns"], record["reserved"], record["peak_reserved"] = 0, 0, 1 << 20
    else:
        torch.cuda.synchronize()
        began_asking = time.monotonic_ns()
        record["free"], record["total"] = torch.cuda.mem_get_info()
        record["asking_ns"] = time.monotonic_ns() - began_asking
        record["reserved"] = torch.cuda.memory_reserved()
        record["peak_reserved"] = torch.cuda.max_memory_reserved()
        torch.cuda.reset_peak_memory_stats()
        record["forward_ns"] = begin.elapsed_time(end) * 1e6
    record["loss"] = float(loss.detach()).hex()
    record["ns"] = time.monotonic_ns() - began
    record["unix_ns"] = time.time_ns()
    if log is not None and rank == 0:
        log.write(json.dumps(record) + "\n")


def captured_step(step):
    """Captures a step, which runs nothing, and runs what was captured."""
    optimizer.zero_grad(set_to_none=True)

    def work():
        loss = model(data).float().sum() * 1e-6
        loss.backward()
        optimizer.step()
        return loss

    if simulated:
        graph = ctypes.c_void_p()
        assert simulator.cuda.cuStreamBeginCapture_v2(None, 0) == 0
        try:
            loss = work()
        finally:
            result = simulator.cuda.cuStreamEndCapture(None, ctypes.byref(graph))
        if result != 0:
            sys.exit("the capture in step %d failed: %d" % (step, result))
    else:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            loss = work()
        graph.replay()
        torch.cuda.synchronize()
    if log is not None:
        log.write(json.dumps({"step": step, "loss": float(loss.detach()).hex()}) + "\n")


if options.name == "capture":
    third = options.steps // 3
    for step in range(options.steps):
        captured_step(step) if third <= step < 2 * third else one_step(step)
elif options.name == "profiler":
    third = options.steps // 3
    activities = [torch.profiler.ProfilerActivity.CPU]
    if not simulated:
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    for step in range(third):
        one_step(step)
    with torch.profiler.profile(activities=activities) as profile:
        for step in range(third, 2 * third):
            one_step(step)
    kinds = [str(getattr(event, "device_type", "")) for event in profile.events()]
    print("profiler events", len(kinds), "on the device", sum("CPU" not in kind for kind in kinds), flush=True)
    for step in range(2 * third, options.steps):
        one_step(step)
else:
    for step in range(options.steps):
        one_step(step)
if log is not None:
    log.close()
print("done", options.name, "torch", torch.__version__)
