"""The model and its images lie in memory as NHWC"""
# write: model = model.to(memory_format=torch.channels_last); images = images.to(memory_format=torch.channels_last)


def images(model, arguments):
    return tuple(one.contiguous(memory_format=torch.channels_last) if isinstance(one, torch.Tensor) and one.dim() == 4
                 else one for one in arguments)


def convert(model, arguments):
    weights = [part.weight for part in model.modules() if isinstance(part, torch.nn.Conv2d)]
    spatial = [one for one in weights if one.shape[1] > 1 and one.shape[2] * one.shape[3] > 1]
    if not weights:
        return None if change.said else change.nothing(type(model).__name__ + " has no convolution of images")
    if spatial and all(one.is_contiguous(memory_format=torch.channels_last) for one in spatial):
        return change.already(type(model).__name__)
    model.to(memory_format=torch.channels_last)
    around(model, images)
    change.made("{} at {}".format(type(model).__name__, at(place())))
    return images(model, arguments)


on_root(convert)
