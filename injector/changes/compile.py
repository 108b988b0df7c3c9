"""torch.compile; compile=MODE gives it a mode, such as reduce-overhead"""
# write: model = torch.compile(model)


def compile_model(model, arguments):
    if type(model).__name__ == "OptimizedModule" or getattr(model, "_compiled_call_impl", None) is not None:
        return change.already(type(model).__name__)
    if next(model.parameters(), None) is None:
        return None  # a loss
    if not hasattr(model, "compile"):
        return change.nothing("torch {} has no Module.compile".format(torch.__version__))
    model.compile(mode=value)
    change.made("{}, from its second call on".format(type(model).__name__))


on_root(compile_model)
