"""Products and convolutions of FP32 run in TF32"""
# write: torch.backends.cuda.matmul.allow_tf32 = True; torch.backends.cudnn.allow_tf32 = True
FLAGS = ["torch.backends.cuda.matmul.allow_tf32 = True", "torch.backends.cudnn.allow_tf32 = True"]


def is_set(part):
    try:
        return part.allow_tf32
    except RuntimeError:  # the program set fp32_precision, beside which these flags cannot be read
        return False


def flags(model, arguments):
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    if "tf32" not in units():
        return change.nothing("this GPU has no TF32")
    precisions = [getattr(part, "fp32_precision", "") for part in (matmul, getattr(cudnn, "conv", cudnn))]
    if (is_set(matmul) and is_set(cudnn)) or precisions == ["tf32", "tf32"]:
        return None if change.said else change.already("both flags are set")
    matmul.allow_tf32 = cudnn.allow_tf32 = True
    change.made("before the first call of " + type(model).__name__, edit_flags(FLAGS))


on_root(flags)
