"""What tensor cores can compute in half precision does so: bfloat16, or float16 and a gradient scaler"""
# write: with torch.autocast("cuda", torch.bfloat16): around the forward and the loss; before Ampere float16, and a GradScaler
open_now, scalers, begun = [], [], []


def leave():
    while open_now:
        leave_autocast(open_now.pop())


def before(model, arguments):
    device = device_of(model)
    if open_now or model.training != torch.is_grad_enabled():  # the latter: no backward pass would end it
        return None
    if autocast_now(device) in ((True, torch.float16), (True, torch.bfloat16)):
        return change.already("at " + at(place()))
    kind = half_type(device)
    if not kind:
        return change.nothing("this GPU's tensor cores have no half precision")
    if kind == "float16":
        scalers[:] = scalers or [torch.cuda.amp.GradScaler()]
    header = None if scalers else 'torch.autocast("{}", torch.bfloat16)'.format(device)
    begun[:] = [stack(), in_autocast(), header, "{} at {}".format(kind, at(place()))]
    open_now[:] = [torch.autocast(device, getattr(torch, kind))]
    open_now[0].__enter__()
    return None if torch.is_grad_enabled() else change.made(begun[3], lambda: edit_autocast(*begun[:3]))


def scale(loss):
    if open_now:
        change.made(begun[3], lambda: edit_autocast(*begun[:3], stack()))
    leave()
    return scalers[0].scale(loss) if scalers else loss


around_roots(before, lambda *_: None if torch.is_grad_enabled() else leave())
before_backward(scale)
around_step(lambda optimizer, step: (scalers[0].step(optimizer), scalers[0].update()) if scalers else step())
