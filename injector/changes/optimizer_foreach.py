"""The optimizer updates lists of weights"""
# write: foreach=True, for the optimizer


def why_not(optimizer, arguments):
    if arguments.get("fused"):
        return "it is a fused one"
    cuda = all(one.device.type == "cuda" for one in parameters_of(arguments))
    default = int(torch.__version__.split(".")[0]) >= 2 and cuda and arguments.get("foreach") is None
    return "that is its default on a GPU" if default else ""


option_change("foreach", True, optimizers_with("foreach"), why_not)
