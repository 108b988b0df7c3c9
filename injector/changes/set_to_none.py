"""Gradients are dropped, not filled with zeros"""
# write: optimizer.zero_grad(set_to_none=True)


def change_method(cls):
    original = cls.zero_grad
    signature = inspect.signature(original)

    @functools.wraps(original)
    def zero_grad(self, *args, **kwargs):
        bound = signature.bind(self, *args, **kwargs)
        given = "set_to_none" in bound.arguments
        bound.apply_defaults()
        if bound.arguments.get("set_to_none", True):
            change.already("zero_grad at " + at(place()))
        else:
            where = place()
            change.made("zero_grad at " + at(where), edit_argument(where, "zero_grad", "set_to_none", "True", given))
            bound.arguments["set_to_none"] = True
        return original(*bound.args, **bound.kwargs)

    cls.zero_grad = zero_grad


change_method(torch.optim.Optimizer)
change_method(torch.nn.Module)
