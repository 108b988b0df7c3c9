"""A model in eval mode keeps nothing for a backward pass"""
# write: with torch.no_grad(): around the validation
trained, inside = set(), {}


def before(model, arguments):
    if model.training:
        trained.add(id(model))
    elif id(model) in trained and torch.is_grad_enabled():
        where = place()
        change.made("{} at {}".format(type(model).__name__, at(where)), edit_with(where, None, "with torch.no_grad():"))
        inside[id(model)] = torch.no_grad()
        inside[id(model)].__enter__()
    elif id(model) in trained:
        change.already(type(model).__name__ + " at " + at(place()))


def after(model, arguments, result):
    if id(model) in inside:
        inside.pop(id(model)).__exit__(None, None, None)


def begin_model(model, arguments):
    around(model, before, after)
    return before(model, arguments)


on_root(begin_model)
