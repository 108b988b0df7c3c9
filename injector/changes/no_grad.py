"""A model in eval mode keeps nothing for a backward pass"""
# write: with torch.no_grad(): around the validation
trained, inside = set(), {}


def before(model, arguments):
    if model.training:
        trained.add(id(model))
    elif id(model) in trained and torch.is_grad_enabled():
        change.made(type(model).__name__ + " at " + at(place()), lambda: edit_with(*own_places()[0], None, "torch.no_grad()"))
        inside[id(model)] = torch.no_grad()
        inside[id(model)].__enter__()
    elif id(model) in trained:
        change.already(type(model).__name__ + " at " + at(place()))


def after(model, arguments, result):
    if id(model) in inside:
        inside.pop(id(model)).__exit__(None, None, None)


around_roots(before, after)
