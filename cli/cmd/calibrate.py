"""Times operators on the GPU, for `rfinject calibrate`, which holds this text and gives it to the user's Python.

Each argument is an operator (cli/model/probes.h); standard output has a line each: its number, the median time of a call in
seconds, and how far the times lie apart. Lines before say what they were measured on; without an argument there are only
these, so that what cannot be measured is known before the minute that measuring takes. What keeps us from it is one line
that begins with "error".
"""
import subprocess
import sys

WARM_UP_S = 1.0  # of the GPU's time: clocks rise under load and settle where power and heat let them
SAMPLE_S = 0.05
SAMPLES = 7
MOST_CALLS = 200


def say(*words):
    print(*(str(word).replace("\t", " ").replace("\n", " ") for word in words), sep="\t", flush=True)


def give_up(text):
    say("error", text)
    sys.exit(0)


try:
    import torch
except ImportError as error:
    give_up(f"{sys.executable} cannot import torch ({error}); --python names the interpreter that trains")


def is_virtual():
    """Whether libcuda is the one of `rfinject --estimate`, which has a clock and computes nothing."""
    import ctypes
    try:
        return hasattr(ctypes.CDLL("libcuda.so.1"), "rfinject_virtual_gpu_start")
    except OSError:
        return False


def clocks():
    """What nvidia-smi says of the clocks now, in words; empty where it says nothing."""
    uuid = str(getattr(torch.cuda.get_device_properties(0), "uuid", ""))
    which = ["-i", uuid if uuid.startswith("GPU-") else "GPU-" + uuid] if uuid else []
    try:
        answer = subprocess.run(["nvidia-smi", *which, "--query-gpu=clocks.sm,clocks.mem", "--format=csv,noheader"],
                                capture_output=True, text=True, timeout=10).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):
        return ""
    # Without a UUID there must be one GPU only, or it may be another's clock.
    if len(answer) != 1 or answer[0].count(",") != 1:
        return ""
    return "SM clock %s; memory clock %s" % tuple(part.strip() for part in answer[0].split(","))


def call_of(words):
    """A function without arguments that runs the operator once."""
    kind, precision, which = words[:3]
    sizes = [int(word) for word in words[3:]]
    dtype = {"fp32": torch.float32, "fp16": torch.float16}[precision]

    def tensor(*shape):
        # Not zeros: the power that arithmetic takes depends on the numbers.
        return torch.randn(*shape, device="cuda", dtype=dtype)

    if kind == "scale":  # a copy by a kernel, not by the driver
        a, b = tensor(*sizes), tensor(*sizes)
        return lambda: torch.mul(a, 2.0, out=b)
    if kind == "add":
        a, b, c = tensor(*sizes), tensor(*sizes), tensor(*sizes)
        return lambda: torch.add(a, b, out=c)
    if kind == "softmax":
        a = tensor(*sizes)
        return lambda: torch.softmax(a, 1)
    if kind == "layer_norm":
        a = tensor(*sizes)
        weight, bias = tensor(sizes[1]), tensor(sizes[1])
        return lambda: torch.nn.functional.layer_norm(a, sizes[1:], weight, bias)
    if kind == "batch_norm":
        a = tensor(*sizes)
        weight, bias, mean, variance = (tensor(sizes[1]).abs() for _ in range(4))
        return lambda: torch.nn.functional.batch_norm(a, mean, variance, weight, bias, training=True)
    if kind == "product":
        batch, m, k, n = sizes
        if batch > 1:
            a, b = tensor(batch, m, k), tensor(batch, k, n)
            return lambda: torch.bmm(a, b)
        a, b = tensor(m, k), tensor(n, k).t()  # as a linear layer has its weight
        return lambda: torch.mm(a, b)
    if kind == "convolution":
        images, c_in, c_out, kernel, stride, height, width = sizes
        pad = kernel // 2
        x, weight = tensor(images, c_in, height, width), tensor(c_out, c_in, kernel, kernel)
        if which == "forward":
            return lambda: torch.nn.functional.conv2d(x, weight, stride=stride, padding=pad)
        gradient = tensor(images, c_out, height // stride, width // stride)
        mask = [which == "dgrad", which == "wgrad", False]
        return lambda: torch.ops.aten.convolution_backward(gradient, x, weight, None, [stride, stride], [pad, pad],
                                                           [1, 1], False, [0, 0], 1, mask)
    raise ValueError(kind)


def seconds_of(call, calls):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(calls):
        call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e-3


def warm_up():
    """Puts the GPU under load until its clocks have settled, and says them while it works."""
    call = call_of("product fp16 forward 1 4096 4096 4096".split())
    spent = 0.0
    while spent < WARM_UP_S:
        spent += seconds_of(call, 20)
    for _ in range(MOST_CALLS):
        call()
    say("clocks", clocks())
    torch.cuda.synchronize()


def time_of(call):
    """The median time of a call, and the range of the middle half of the samples over it."""
    seconds_of(call, 3)  # libraries choose their kernels, memory is allocated
    calls = max(1, min(MOST_CALLS, round(SAMPLE_S / max(seconds_of(call, 3) / 3, 1e-9))))
    samples = sorted(seconds_of(call, calls) / calls for _ in range(SAMPLES))
    middle = samples[SAMPLES // 2]
    return middle, (samples[SAMPLES - 2] - samples[1]) / middle


def main(probes):
    if torch.version.cuda is None:
        give_up(f"torch {torch.__version__} of {sys.executable} is a build without CUDA; --python names an interpreter whose "
                "torch is a CUDA build")
    if not torch.cuda.is_available():
        give_up(f"torch {torch.__version__} finds no GPU here; calibrate runs on the machine whose GPU it is to measure "
                "(nvidia-smi lists GPUs, CUDA_VISIBLE_DEVICES may hide them, rfinject doctor says more)")
    properties = torch.cuda.get_device_properties(0)
    say("device", properties.name)
    say("memory", properties.total_memory)
    say("torch", torch.__version__)
    if is_virtual():
        say("virtual")
    if not probes:
        say("end")
        return
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    words = "the warm-up"
    try:
        with torch.no_grad():
            warm_up()
            for number, words in enumerate(probes):
                seconds, spread = time_of(call_of(words.split()))
                say("time", number, "%.9g" % seconds, "%.3f" % spread)
                torch.cuda.empty_cache()
    except RuntimeError as error:  # out of memory, most of all
        give_up(f"{words} failed: {str(error).splitlines()[0]}; 3 GB of the GPU's memory must be free")
    say("end")


main(sys.argv[1:])
