"""Products and convolutions of FP32 run in TF32"""
# write: torch.backends.cuda.matmul.allow_tf32 = True; torch.backends.cudnn.allow_tf32 = True
FLAGS = ["torch.backends.cuda.matmul.allow_tf32 = True", "torch.backends.cudnn.allow_tf32 = True"]


def is_set(part, newer):
    try:
        return part.allow_tf32
    except RuntimeError:  # the program set fp32_precision (torch 2.9), beside which this cannot be read
        return newer().fp32_precision == "tf32"


def flags(model, arguments):
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    if "tf32" not in units():
        return change.nothing("this GPU has no TF32")
    if is_set(matmul, lambda: matmul) and is_set(cudnn, lambda: cudnn.conv):
        return None if change.said else change.already("both flags are set")
    matmul.allow_tf32 = cudnn.allow_tf32 = True
    change.made("before the first call of " + type(model).__name__, edit_flags(FLAGS))


on_root(flags)
