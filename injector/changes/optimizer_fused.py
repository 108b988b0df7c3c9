"""The optimizer updates all weights with one kernel for many"""
# write: fused=True, for the optimizer


def why_not(optimizer, arguments):
    if any(one.device.type != "cuda" or not one.is_floating_point() for one in parameters_of(arguments)):
        return "its parameters do not all lie on the GPU"
    return "it is differentiable" if arguments.get("differentiable") else ""


option_change("fused", True, optimizers_with("fused"), why_not, instead_of=("foreach",),
              framework=("TrainingArguments", "optim", "adamw_torch_fused"))
