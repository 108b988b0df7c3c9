"""Named layers run their forward again in the backward: checkpoint=layer3,layer4"""
# write: x = torch.utils.checkpoint.checkpoint(self.layer3, x, use_reentrant=False), for each of the layers
names, again_now = (value or "").split(","), set()


def checkpointed(layer, forward, args, kwargs):
    from torch.utils.checkpoint import checkpoint
    if id(layer) in again_now or not torch.is_grad_enabled():
        return forward(*args, **kwargs)
    runs = []

    def run(*args, **kwargs):
        runs.append(True)
        if len(runs) == 1 or layer._forward_pre_hooks or layer._forward_hooks:
            return forward(*args, **kwargs)
        again_now.add(id(layer))  # what runs again is a call of the layer, as it is where a person wrote it
        try:
            return layer(*args, **kwargs)
        finally:
            again_now.discard(id(layer))

    return checkpoint(run, *args, use_reentrant=False, **kwargs)


def wrap(model, arguments):
    layers = {name[7:] if name.startswith("module.") else name: layer for name, layer in model.named_modules()}
    for name in names:
        if name not in layers:
            change.nothing("{} has no layer {}".format(type(model).__name__, name))
        elif not isinstance(layers[name].forward, functools.partial):
            layer, forward = layers[name], layers[name].forward
            layer.forward = functools.partial(lambda layer, forward, *args, **kwargs: checkpointed(layer, forward, args, kwargs),
                                              layer, forward)
            change.made(name)


on_root(wrap)
