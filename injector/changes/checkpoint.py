"""Named layers run their forward again in the backward: checkpoint=layer3,layer4"""
# write: x = torch.utils.checkpoint.checkpoint(self.layer3, x, use_reentrant=False), for each of the layers
names = (value or "").split(",")


def wrap(model, arguments):
    if not value:
        raise SystemExit("rfinject try: checkpoint=LAYER,LAYER says which layers")
    if next(model.parameters(), None) is None:
        return  # a loss
    from torch.utils.checkpoint import checkpoint
    layers = {name[7:] if name.startswith("module.") else name: layer for name, layer in model.named_modules()}
    for name in names:
        if name not in layers:
            change.nothing("{} has no layer {}".format(type(model).__name__, name))
            continue
        forward = layers[name].forward
        if getattr(forward, "checkpointed", False):
            continue

        def again(*args, forward=forward, **kwargs):
            if not torch.is_grad_enabled():
                return forward(*args, **kwargs)
            return checkpoint(forward, *args, use_reentrant=False, **kwargs)

        again.checkpointed = True
        layers[name].forward = again
        change.made(name)


on_root(wrap)
