"""Products and convolutions of FP32 run in TF32"""
# write: torch.backends.cuda.matmul.allow_tf32 = True; torch.backends.cudnn.allow_tf32 = True


def flags(model, arguments):
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    if "tf32" not in units():
        return change.nothing("this GPU has no TF32")
    if matmul.allow_tf32 and cudnn.allow_tf32:
        return None if change.said else change.already("both flags are set")
    matmul.allow_tf32 = cudnn.allow_tf32 = True
    change.made("before the first call of " + type(model).__name__,
                edit_behind_imports(place(), "torch.backends.cuda.matmul.allow_tf32 = True\n"
                                             "torch.backends.cudnn.allow_tf32 = True"))


on_root(flags)
