"""Training programs with known work, one after another in one process, for scripts/gpu_probe. They know nothing of rfinject.

    battery.py PROGRAM[,PROGRAM...] --log FILE [--steps N] [--device cuda|SIMULATOR_FOLDER] [--record FOLDER] [--ncu]
               [--after FILE]

Starting Python, torch and CUDA takes 13 to 18 s on a machine with a GPU, so all questions that can share a process do. Each
program appends a line to the log as soon as it has ended, so that an end at any time leaves what was seen:
{"program", "steps_ms" (by CUDA events), "began_ns" (of each step on the host, CLOCK_MONOTONIC), "losses" (hexadecimal, exact),
"peak" bytes, "said"}. A program that fails says why in "failed", and the next one runs.

--record writes the last step of each program as a recording of torch.profiler, FOLDER/PROGRAM.json; --ncu puts the last step of
the last program between cudaProfilerStart and cudaProfilerStop; --after waits, once torch is imported, until FILE is there, so
that several processes may start at once and use the GPU in turn. With a simulator's folder as device, layers launch simulated
kernels instead.
"""

import argparse
import contextlib
import ctypes
import json
import os
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("programs")
parser.add_argument("--log", required=True)
parser.add_argument("--steps", type=int, default=300)
parser.add_argument("--device", default="cuda")
parser.add_argument("--record")
parser.add_argument("--ncu", action="store_true")
parser.add_argument("--after")
options = parser.parse_args()
simulated = options.device != "cuda"
if not simulated:
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # else cuBLAS is not deterministic


class Simulator:
    """The simulated driver of integration_tests/simulated_gpu: kernels with known counts."""

    FLOP = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"

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

    def launch(self, name, flop, dram_bytes):
        found = self.kept.get((name, flop))
        if found is None:
            counts = {"dram__bytes_read.sum": dram_bytes / 2, "dram__bytes_write.sum": dram_bytes / 2, self.FLOP: flop / 2}
            metrics = (self.Metric * len(counts))(*[self.Metric(key.encode(), value) for key, value in counts.items()])
            found = self.kept[(name, flop)] = self.Kernel(name.encode(), 20000, metrics, len(counts), None)
        self.cuda.cuCtxSetCurrent(self.context)
        self.cuda.cuLaunchKernel(ctypes.byref(found), 4, 1, 1, 128, 1, 1, 0, None, None, None)


simulator = Simulator(options.device) if simulated else None

import torch  # noqa: E402

while options.after and not os.path.exists(options.after):
    time.sleep(0.02)
if not simulated and not torch.cuda.is_available():
    sys.exit("torch sees no GPU")
device = "cpu" if simulated else "cuda"
torch.backends.cudnn.benchmark = False


class SimulatedWork(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, name, flop, dram_bytes):
        ctx.arguments = (name, flop, dram_bytes)
        simulator.launch("forward_" + name, flop, dram_bytes)
        return x * 1.0

    @staticmethod
    def backward(ctx, gradient):
        name, flop, dram_bytes = ctx.arguments
        simulator.launch("backward_" + name, 2 * flop, 2 * dram_bytes)
        return gradient, None, None, None


class SimulatedLinear(torch.nn.Module):
    """Launches the kernel that a Linear of this size would, and no other."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((outputs, inputs), 0.001))

    def forward(self, x):
        outputs, inputs = self.weight.shape
        y = SimulatedWork.apply(x, "gemm_%d_%d" % (inputs, outputs), float(2 * len(x) * inputs * outputs),
                                4.0 * inputs * outputs)
        return y[:, :1].expand(-1, outputs) * self.weight[0, 0]


def linear(inputs, outputs):
    return SimulatedLinear(inputs, outputs) if simulated else torch.nn.Linear(inputs, outputs, bias=False)


class Program:
    """A model in training. `step` returns the loss, `after` runs once all steps have."""

    said = ""

    def __init__(self, name, model, inputs, loss, precision="fp32", run=None, optimizer=None):
        model.__class__ = type(name, (type(model),), {})  # so that reports tell the programs' models apart
        self.model, self.inputs, self.loss = model.to(device), inputs, loss
        self.run = run or self.model
        self.precision = precision
        self.optimizer = optimizer or torch.optim.SGD(self.model.parameters(), lr=1e-4, momentum=0.9)
        scaler = getattr(torch.amp, "GradScaler", torch.cuda.amp.GradScaler)  # torch.amp has it from 2.3 on
        self.scaler = scaler(enabled=precision == "amp" and not simulated)

    def settings(self):
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = self.precision != "fp32"

    def cast(self):
        if simulated or self.precision not in ("amp", "bf16"):
            return contextlib.nullcontext()
        return torch.autocast("cuda", dtype=torch.float16 if self.precision == "amp" else torch.bfloat16)

    def step(self, index, steps):
        self.optimizer.zero_grad(set_to_none=True)
        with self.cast():
            loss = self.loss(self.run(*self.inputs))
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.detach()

    def after(self):
        pass


def layers(widths):
    modules = []
    for inputs, outputs in zip(widths, widths[1:]):
        modules += [linear(inputs, outputs), torch.nn.ReLU()]
    return torch.nn.Sequential(*modules)


def small(name, widths=(64, 128, 256, 128, 64), batch=256):
    """What stands for any program on the simulated GPU, and is one where the network does not matter."""
    return Program(name, layers(widths), (torch.randn(batch, widths[0], device=device),), lambda y: y.float().sum() * 1e-6)


def classifier(name, model, batch, precision, channels_last=False):
    import torchvision
    network = getattr(torchvision.models, model)(weights=None)
    images = torch.randn(batch, 3, 224, 224, device=device)
    if channels_last:
        network, images = network.to(memory_format=torch.channels_last), images.to(memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (batch,), device=device)
    return Program(name, network, (images,), lambda y: torch.nn.functional.cross_entropy(y, labels), precision)


class Block(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.ln_2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.c_attn, self.c_proj = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.fc, self.proj, self.heads = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width), heads

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in self.c_attn(self.ln_1(x)).split(width, 2))
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.proj(torch.nn.functional.gelu(self.fc(self.ln_2(x)), approximate="tanh"))


class Gpt(torch.nn.Module):
    """GPT-2 small. Own code, since transformers may not be there."""

    def __init__(self, words=50257, length=1024, width=768, blocks=12, heads=12):
        super().__init__()
        self.wte, self.wpe = torch.nn.Embedding(words, width), torch.nn.Embedding(length, width)
        self.h = torch.nn.ModuleList(Block(width, heads) for _ in range(blocks))
        self.ln_f, self.head = torch.nn.LayerNorm(width), torch.nn.Linear(width, words, bias=False)

    def forward(self, words):
        x = self.wte(words) + self.wpe(torch.arange(words.shape[1], device=words.device))
        for block in self.h:
            x = block(x)
        return self.head(self.ln_f(x))


def gpt(name):
    words = torch.randint(0, 50257, (8, 1024), device=device)
    return Program(name, Gpt(), (words,),
                   lambda y: torch.nn.functional.cross_entropy(y.flatten(0, 1), words.flatten()), "bf16")


# --- Block D: networks of many kinds, for estimates to be held against. transformers may not be there.

def words(batch, length, count=30000):
    return torch.randint(0, count, (batch, length), device=device)


def transformer(name, kind, batch, length, precision="bf16", adam=False, **config):
    import transformers
    with torch.device(device):
        network = getattr(transformers, kind)(getattr(transformers, kind.split("For")[0] + "Config")(**config))
    tokens = words(batch, length)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-5) if adam else None
    return Program(name, network, (tokens,), lambda y: torch.nn.functional.cross_entropy(
        y.logits.flatten(0, 1), tokens.flatten()), precision, optimizer=optimizer)


class Recurrent(torch.nn.Module):
    def __init__(self, count=20000, width=1024):
        super().__init__()
        self.embedding, self.lstm = torch.nn.Embedding(count, width), torch.nn.LSTM(width, width, 2, batch_first=True)
        self.head = torch.nn.Linear(width, count)

    def forward(self, x):
        return self.head(self.lstm(self.embedding(x))[0])


class Recommender(torch.nn.Module):
    """Tables of embeddings beside a dense part, as DLRM has them."""

    def __init__(self, tables=16, rows=200000, width=64):
        super().__init__()
        self.tables = torch.nn.ModuleList(torch.nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables))
        self.bottom, self.top = layers((16, 512, 256, width)), layers(((tables + 1) * width, 1024, 512, 1))

    def forward(self, dense, lookups):
        parts = [self.bottom(dense)] + [table(one) for table, one in zip(self.tables, lookups)]
        return self.top(torch.cat(parts, 1))


class Unet(torch.nn.Module):
    def __init__(self, width=64):
        super().__init__()
        def double(inputs, outputs):
            return torch.nn.Sequential(torch.nn.Conv2d(inputs, outputs, 3, padding=1), torch.nn.GroupNorm(8, outputs),
                                       torch.nn.SiLU(), torch.nn.Conv2d(outputs, outputs, 3, padding=1),
                                       torch.nn.GroupNorm(8, outputs), torch.nn.SiLU())
        self.down = torch.nn.ModuleList([double(3, width), double(width, 2 * width), double(2 * width, 4 * width)])
        self.up = torch.nn.ModuleList([double(6 * width, 2 * width), double(3 * width, width)])
        self.pool, self.grow, self.last = torch.nn.MaxPool2d(2), torch.nn.Upsample(scale_factor=2), torch.nn.Conv2d(width, 3, 1)

    def forward(self, x):
        kept = []
        for block in self.down[:-1]:
            kept.append(block(x))
            x = self.pool(kept[-1])
        x = self.down[-1](x)
        for block in self.up:
            x = block(torch.cat([self.grow(x), kept.pop()], 1))
        return self.last(x)


def recurrent(name):
    tokens = words(64, 128, 20000)
    return Program(name, Recurrent(), (tokens,),
                   lambda y: torch.nn.functional.cross_entropy(y.flatten(0, 1), tokens.flatten()), "tf32")


def recommender(name):
    lookups = [torch.randint(0, 200000, (8192, 8), device=device) for _ in range(16)]
    return Program(name, Recommender(), (torch.randn(8192, 16, device=device), lookups), lambda y: y.square().mean(), "tf32")


def unet(name):
    images = torch.randn(16, 3, 256, 256, device=device)
    return Program(name, Unet(), (images,), lambda y: (y.float() - images).square().mean(), "bf16")


# --- Block B.

class TwoStreams(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = layers((2048, 2048, 2048)), layers((2048, 2048, 2048))
        self.stream = torch.cuda.Stream()

    def forward(self, x):
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            right = self.right(x)
        left = self.left(x)
        torch.cuda.current_stream().wait_stream(self.stream)
        return left + right


def streams(name):
    return Program(name, TwoStreams(), (torch.randn(4096, 2048, device=device),), lambda y: y.sum() * 1e-6)


class Graph(Program):
    """Forward and backward in a CUDA graph, which the third step captures."""

    def step(self, index, steps):
        if index < 2:
            return super().step(index, steps)
        if index == 2:
            self.graph = torch.cuda.CUDAGraph()
            self.optimizer.zero_grad(set_to_none=True)
            torch.cuda.synchronize()
            with torch.cuda.graph(self.graph):
                self.captured = self.loss(self.run(*self.inputs))
                self.captured.backward()
        self.graph.replay()
        self.optimizer.step()
        return self.captured.detach().clone()


def graph(name):
    return Graph(name, layers((1024, 2048, 2048, 1024)), (torch.randn(4096, 1024, device=device),), lambda y: y.sum() * 1e-6)


def compiled(name):
    program = small(name, (1024, 2048, 2048, 1024), 4096)
    program.run = torch.compile(program.model, mode="reduce-overhead")
    return program


def tiny(name):
    return small(name, (4,) * 201, 4)


class Profiled(Program):
    """torch.profiler around the middle third."""

    def step(self, index, steps):
        if index == steps // 3:
            self.profile = torch.profiler.profile()
            self.profile.__enter__()
        loss = super().step(index, steps)
        if index == 2 * steps // 3:
            self.profile.__exit__(None, None, None)
            on_device = sum("CPU" not in str(getattr(e, "device_type", "")) for e in self.profile.events())
            self.said = "torch.profiler saw %d events on the device" % on_device
        return loss


def profiled(name):
    return Profiled(name, layers((1024, 2048, 2048, 1024)), (torch.randn(4096, 1024, device=device),), lambda y: y.sum() * 1e-6)


class Communicating(Program):
    """An all-reduce of each of two communicators of one process."""

    def step(self, index, steps):
        import torch.distributed as dist
        if index == 0:
            os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
            os.environ.setdefault("MASTER_PORT", "29577")
            dist.init_process_group("nccl", rank=0, world_size=1)
            self.groups = [dist.group.WORLD, dist.new_group([0])]
        loss = super().step(index, steps)
        for group in self.groups:
            dist.all_reduce(self.model[0].weight.grad, group=group)
        return loss

    def after(self):
        import torch.distributed as dist
        dist.destroy_process_group()


def nccl(name):
    return Communicating(name, layers((1024, 2048, 1024)), (torch.randn(4096, 1024, device=device),), lambda y: y.sum() * 1e-6)


class Moves(torch.nn.Module):
    """Each of its modules moves a known number of bytes, far beyond any cache: a copy 8 bytes a number, a sum 12."""

    class Copy(torch.nn.Module):
        def forward(self, x, y, z):
            return y.copy_(x)

    class Triad(torch.nn.Module):
        def forward(self, x, y, z):
            return torch.add(x, y, alpha=2.0, out=z)

    def __init__(self):
        super().__init__()
        self.copy, self.triad, self.factor = self.Copy(), self.Triad(), torch.nn.Parameter(torch.ones(()))

    def forward(self, x, y, z):
        with torch.no_grad():
            self.copy(x, y, z)
            self.triad(x, y, z)
        return self.factor * 1.0


def moves(name):
    return Program(name, Moves(), tuple(torch.randn(1 << 27, device=device) for _ in range(3)), lambda y: y)


def products(name, precision):
    program = small(name, (8192, 8192), 8192)
    program.precision = precision
    return program


PROGRAMS = {
    "resnet18_fp32": lambda name: classifier(name, "resnet18", 256, "fp32"),
    "resnet50_amp": lambda name: classifier(name, "resnet50", 128, "amp", channels_last=True),
    "gpt_bf16": gpt,
    "streams": streams, "graph": graph, "compiled": compiled, "tiny": tiny, "profiled": profiled, "nccl": nccl,
    "moves": moves,
    "resnet18_tf32": lambda name: classifier(name, "resnet18", 64, "tf32"),
    "resnet18_amp": lambda name: classifier(name, "resnet18", 64, "amp"),
    "resnet50_fp32": lambda name: classifier(name, "resnet50", 64, "fp32"),
    "resnet152_bf16": lambda name: classifier(name, "resnet152", 64, "bf16", channels_last=True),
    "vgg16_amp": lambda name: classifier(name, "vgg16", 64, "amp"),
    "densenet121_tf32": lambda name: classifier(name, "densenet121", 64, "tf32"),
    "mobilenet_v3_amp": lambda name: classifier(name, "mobilenet_v3_large", 128, "amp", channels_last=True),
    "efficientnet_b0_amp": lambda name: classifier(name, "efficientnet_b0", 128, "amp", channels_last=True),
    "convnext_tiny_bf16": lambda name: classifier(name, "convnext_tiny", 64, "bf16"),
    "regnet_y_8gf_amp": lambda name: classifier(name, "regnet_y_8gf", 64, "amp", channels_last=True),
    "vit_b_16_bf16": lambda name: classifier(name, "vit_b_16", 64, "bf16"),
    "vit_b_16_tf32": lambda name: classifier(name, "vit_b_16", 32, "tf32"),
    "swin_t_amp": lambda name: classifier(name, "swin_t", 64, "amp"),
    "alexnet_fp32": lambda name: classifier(name, "alexnet", 256, "fp32"),
    "bert_bf16": lambda name: transformer(name, "BertForMaskedLM", 16, 512, adam=True),
    "bert_tf32": lambda name: transformer(name, "BertForMaskedLM", 8, 512, "tf32", adam=True),
    "llama_bf16": lambda name: transformer(
        name, "LlamaForCausalLM", 4, 1024, adam=True, vocab_size=32000, hidden_size=2048, intermediate_size=5504,
        num_hidden_layers=8, num_attention_heads=16, num_key_value_heads=4),
    "opt_fp32": lambda name: transformer(name, "OPTForCausalLM", 4, 1024, "fp32"),
    "recurrent_tf32": recurrent, "recommender_tf32": recommender, "unet_bf16": unet,
    **{"product_" + precision: lambda name, precision=precision: products(name, precision)
       for precision in ("fp32", "tf32", "amp", "bf16")},
}


def now():
    if simulated:
        return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def run(name, steps, last):
    torch.manual_seed(0)
    program = small(name) if simulated else PROGRAMS[name](name)
    program.settings()
    marks, began, losses, profile = [], [], [], None
    for index in range(steps):
        if options.record and index == steps - 1:
            if not simulated:
                torch.cuda.synchronize()
            profile = torch.profiler.profile(record_shapes=True, with_stack=True, with_modules=True)
            profile.__enter__()
        if last and options.ncu and index == steps - 1:
            torch.cuda.synchronize()
            torch.cuda.cudart().cudaProfilerStart()
        marks.append(now())
        began.append(time.monotonic_ns())
        losses.append(program.step(index, steps))
    marks.append(now())
    if not simulated:
        torch.cuda.synchronize()
    if last and options.ncu:
        torch.cuda.cudart().cudaProfilerStop()
    if profile is not None:
        profile.__exit__(None, None, None)
        profile.export_chrome_trace(os.path.join(options.record, name + ".json"))
    program.after()
    peak = 0 if simulated else torch.cuda.max_memory_allocated()
    if not simulated:
        torch.cuda.reset_peak_memory_stats()
    between = (lambda a, b: (b - a) * 1e3) if simulated else (lambda a, b: a.elapsed_time(b))
    return {"steps_ms": [between(a, b) for a, b in zip(marks, marks[1:])], "began_ns": began, "losses": [float(loss).hex() for loss in losses],
            "peak": peak, "said": program.said}


names = options.programs.split(",")
with open(options.log, "a", encoding="utf-8") as log:
    for place, program_name in enumerate(names):
        try:
            seen = run(program_name, options.steps, place == len(names) - 1)
        except Exception as error:  # pylint: disable=broad-except
            seen = {"failed": "%s: %s" % (type(error).__name__, str(error).splitlines()[0] if str(error) else "")}
        log.write(json.dumps({"program": program_name, **seen}) + "\n")
        log.flush()
        print(program_name, seen.get("failed") or "ran %d steps" % len(seen["losses"]), flush=True)
