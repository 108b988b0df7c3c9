"""What tensor cores can compute in half precision does so: bfloat16, or float16 and a gradient scaler"""
# write: with torch.autocast("cuda", torch.bfloat16): around the forward and the loss; before Ampere float16, and a GradScaler
open_now, scalers, where = [], [], []


def leave():
    while open_now:
        open_now.pop().__exit__(None, None, None)


def before(model, arguments):
    device = device_of(model)
    if open_now or model.training != torch.is_grad_enabled():  # the latter: no backward pass would end it
        return None
    if torch.is_autocast_enabled() or torch.is_autocast_cpu_enabled():
        return change.already("at " + at(place()))
    if device == "cuda" and not {"bf16", "fp16"} & set(units()):
        return change.nothing("this GPU's tensor cores have no half precision")
    if device == "cuda" and "bf16" not in units():
        scalers[:] = scalers or [torch.cuda.amp.GradScaler()]
    where[:], open_now[:] = [place()], [torch.autocast(device, torch.float16 if scalers else torch.bfloat16)]
    open_now[0].__enter__()


def scale(loss):
    if open_now:
        diff = edit_with(where[0], place(), 'with torch.autocast("{}", torch.bfloat16):'.format(loss.device.type))
        change.made(("float16 at " if scalers else "bfloat16 at ") + at(where[0]), "" if scalers else diff)
    leave()
    return scalers[0].scale(loss) if scalers else loss

def begin_model(model, arguments):
    if next(model.parameters(), None) is not None:
        around(model, before, lambda *_: None if torch.is_grad_enabled() else leave())
        before(model, arguments)


on_root(begin_model)
before_backward(scale)
around_step(lambda optimizer, step: (scalers[0].step(optimizer), scalers[0].update()) if scalers else step())
