"""cuDNN times its algorithms and takes the fastest"""
# write: torch.backends.cudnn.benchmark = True


def flag(model, arguments):
    if not any(isinstance(part, torch.nn.modules.conv._ConvNd) for part in model.modules()):
        return None if change.said else change.nothing(type(model).__name__ + " has no convolution")
    if torch.backends.cudnn.benchmark:
        return None if change.said else change.already("the flag is set")
    torch.backends.cudnn.benchmark = True
    change.made("before the first call of " + type(model).__name__, edit_flags(["torch.backends.cudnn.benchmark = True"]))


on_root(flag)
