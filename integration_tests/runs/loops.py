"""Training loops as people write them, each with what is to be measured of it, counted by hand from its shapes.

All models are linear layers without a bias, so that FLOP of matrix products are exact and everything else is none:
2 for a multiply-add; a backward has the product for the weight, and one for the input unless that is the batch itself.
"""
import copy
import dataclasses

LOOPS = {}


@dataclasses.dataclass
class Step:
    """One optimizer step: FLOP of its matrix products, and its samples."""
    flop: int
    samples: int


@dataclasses.dataclass
class Batch:
    """A batch of validation, which runs when `after` optimizer steps have ended."""
    after: int
    flop: int
    samples: int


@dataclasses.dataclass
class Loop:
    run: object
    steps: list
    batches: list
    period: int  # optimizer steps of an iteration


def loop(steps, batches=(), period=1):
    def keep(function):
        LOOPS[function.__name__] = Loop(function, list(steps), list(batches), period)
        return function
    return keep


# --- What a batch of b samples costs in layers of these sizes.

def forward(b, *sizes):
    return sum(2 * b * i * o for i, o in zip(sizes, sizes[1:]))


def backward(b, *sizes, into_input=False):
    first = 0 if into_input else 2 * b * sizes[0] * sizes[1]
    return 2 * forward(b, *sizes) - first


def trained(b, *sizes):
    return forward(b, *sizes) + backward(b, *sizes)


def through(b, *sizes):
    """Backward to the input only, of layers whose weights want no gradient."""
    return forward(b, *sizes)


# --- What the loops are made of.

def linear(*sizes):
    from torch import nn
    return nn.Sequential(*[nn.Linear(i, o, bias=False) for i, o in zip(sizes, sizes[1:])])


def named(name, *sizes):
    """As linear, of a class of its own."""
    from torch import nn
    return type(name, (nn.Sequential,), {})(*linear(*sizes))


def sgd(*models, kind="SGD"):
    import torch
    return getattr(torch.optim, kind)([p for m in models for p in m.parameters()], lr=1e-4)


def data(b, width=8):
    import torch
    return torch.ones(b, width)


def no_grad():
    import torch
    return torch.no_grad()


def update(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def fit(net, optimizer, steps, b=4):
    net.train()
    for _ in range(steps):
        update(optimizer, net(data(b)).sum())


def validate(net, batches, b=10):
    net.eval()
    with no_grad():
        for _ in range(batches):
            net(data(b)).argmax(1)


A = (8, 16, 4)  # the usual model
STEP = Step(trained(4, *A), 4)


def batches(after, count, b=10, sizes=A):
    return [Batch(after, forward(b, *sizes), b) for _ in range(count)]


# --- Plain ones, and validation.

@loop([STEP] * 6)
def plain():
    net = linear(*A)
    fit(net, sgd(net), 6)


@loop([STEP] * 6, batches(3, 5) + batches(6, 5))
def validation_each_epoch():
    net = linear(*A)
    optimizer = sgd(net)
    for _ in range(2):
        fit(net, optimizer, 3)
        validate(net, 5)


@loop([STEP] * 6, batches(3, 5) + batches(6, 5))
def validation_without_eval():
    net = linear(*A)
    optimizer = sgd(net)
    for _ in range(2):
        fit(net, optimizer, 3)
        with no_grad():
            for _ in range(5):
                net(data(10))


@loop([STEP] * 6, batches(3, 5) + batches(6, 5))
def validation_without_no_grad():
    net = linear(*A)
    optimizer = sgd(net)
    for _ in range(2):
        fit(net, optimizer, 3)
        net.eval()
        for _ in range(5):
            net(data(10))


@loop([STEP] * 5, [b for i in range(1, 6) for b in batches(i, 1)])
def validation_each_step():
    net = linear(*A)
    optimizer = sgd(net)
    for _ in range(5):
        fit(net, optimizer, 1)
        validate(net, 1)


@loop([STEP] * 6, batches(0, 2) + batches(3, 5) + batches(6, 5))
def sanity_check():
    net = linear(*A)
    optimizer = sgd(net)
    validate(net, 2)
    for _ in range(2):
        fit(net, optimizer, 3)
        validate(net, 5)


@loop([STEP] * 6, batches(0, 1))
def sanity_check_of_one_batch():
    net = linear(*A)
    optimizer = sgd(net)
    validate(net, 1)
    fit(net, optimizer, 6)


@loop([STEP] * 6, batches(0, 4))
def zero_shot_before_the_optimizer():
    net = linear(*A)
    validate(net, 4)
    fit(net, sgd(net), 6)


@loop([STEP] * 6, batches(0, 1, b=1))
def dry_run():
    net = linear(*A)
    net(data(1))
    fit(net, sgd(net), 6)


@loop([STEP] * 6, batches(0, 1, b=1))
def dry_run_without_gradients():
    net = linear(*A)
    with no_grad():
        net(data(1))
    fit(net, sgd(net), 6)


@loop([Step(trained(4, *A), 4)] * 3 + [Step(trained(2, *A), 2)] + [Step(trained(4, *A), 4)] * 3
      + [Step(trained(2, *A), 2)])
def loader_with_a_smaller_last_batch():
    import torch
    net = linear(*A)
    optimizer = sgd(net)
    loader = torch.utils.data.DataLoader(torch.ones(14, 8), batch_size=4)
    for _ in range(2):
        for x in loader:
            update(optimizer, net(x).sum())


# --- Accumulation, curricula, closures.

@loop([Step(4 * trained(2, *A), 8)] * 5)
def accumulation():
    net = linear(*A)
    optimizer = sgd(net)
    for _ in range(5):
        for _ in range(4):
            net(data(2)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


@loop(([Step(4 * trained(2, *A), 8)] * 2 + [Step(2 * trained(2, *A), 4)]) * 3)
def accumulation_with_a_rest():
    net = linear(*A)
    optimizer = sgd(net)
    for _ in range(3):
        for i in range(10):
            net(data(2)).sum().backward()
            if i % 4 == 3 or i == 9:
                optimizer.step()
                optimizer.zero_grad()


@loop([Step(4 * trained(2, *A), 8), Step(6 * trained(2, *A), 12), Step(4 * trained(2, *A), 8)],
      batches(1, 5) + batches(2, 5) + batches(3, 5))
def accumulation_whose_rest_waits():
    net = linear(*A)
    optimizer = sgd(net)
    waiting = 0
    for epoch, calls in enumerate((6, 6, 4)):
        net.train()
        for _ in range(calls):
            net(data(2)).sum().backward()
            waiting += 1
            if waiting == 4 + 2 * (epoch == 1):
                optimizer.step()
                optimizer.zero_grad()
                waiting = 0
        validate(net, 5)


@loop([Step(trained(b, *A), b) for b in (2, 2, 4, 4, 8, 8)])
def curriculum():
    net = linear(*A)
    optimizer = sgd(net)
    for b in (2, 2, 4, 4, 8, 8):
        fit(net, optimizer, 1, b)


@loop([Step(2 * trained(4, *A), 8)] * 4)
def sharpness_aware():
    net = linear(*A)
    optimizer = sgd(net)
    for _ in range(4):
        net(data(4)).sum().backward()
        with no_grad():
            for p in net.parameters():
                p.add_(p.grad, alpha=0.05)
        optimizer.zero_grad()
        update(optimizer, net(data(4)).sum())


# --- Averages of the weights.

@loop([STEP] * 6, batches(3, 5) + batches(6, 5))
def ema():
    net = linear(*A)
    average = copy.deepcopy(net)
    optimizer = sgd(net)
    for _ in range(2):
        fit(net, optimizer, 3)
        with no_grad():
            for a, p in zip(average.parameters(), net.parameters()):
                a.lerp_(p, 0.1)
        validate(average, 5)


@loop([STEP] * 6, batches(3, 3) + batches(3, 5) + batches(6, 3) + batches(6, 5))
def ema_beside_the_model():
    net = linear(*A)
    average = copy.deepcopy(net)
    optimizer = sgd(net)
    for _ in range(2):
        fit(net, optimizer, 3)
        validate(net, 3)
        validate(average, 5)


@loop([STEP] * 8, batches(4, 1) + batches(8, 1))
def ema_of_one_batch():
    net = linear(*A)
    average = copy.deepcopy(net)
    optimizer = sgd(net)
    for _ in range(2):
        fit(net, optimizer, 4)
        validate(average, 1)


@loop([STEP] * 6, batches(0, 2) + batches(3, 5) + batches(6, 5))
def ema_with_a_sanity_check():
    net = linear(*A)
    average = copy.deepcopy(net)
    optimizer = sgd(net)
    validate(average, 2)
    for _ in range(2):
        fit(net, optimizer, 3)
        validate(average, 5)


@loop([STEP] * 6, batches(6, 5))
def swa_utils():
    import torch
    net = linear(*A)
    optimizer = sgd(net)
    average = torch.optim.swa_utils.AveragedModel(net)
    for _ in range(2):
        fit(net, optimizer, 3)
        average.update_parameters(net)
    validate(average, 5)


@loop([STEP] * 6, batches(3, 5) + batches(6, 5))
def average_validated_with_gradients():
    import torch
    net = linear(*A)
    optimizer = sgd(net)
    average = torch.optim.swa_utils.AveragedModel(net)
    for _ in range(2):
        fit(net, optimizer, 3)
        average.update_parameters(net)
        average.eval()
        for _ in range(5):
            average(data(10))


@loop([STEP] * 6, batches(3, 5) + batches(6, 5))
def ema_made_for_each_epoch():
    net = linear(*A)
    optimizer = sgd(net)
    for _ in range(2):
        fit(net, optimizer, 3)
        validate(copy.deepcopy(net).requires_grad_(False), 5)


# --- Adversaries.

Z, X = (8, 16), (16, 4)  # generator, discriminator


def critic_step(b):
    return forward(b, *Z) + 2 * trained(b, *X)


def generator_step(b):
    return trained(b, *Z) + forward(b, *X) + backward(b, *X, into_input=True)


def train_gan(iterations, rest=False):
    """`rest`: ends inside of one more iteration, after the critic's step."""
    g, d = named("Generator", *Z), named("Discriminator", *X)
    og, od = sgd(g, kind="Adam"), sgd(d, kind="Adam")
    for iteration in range(iterations + rest):
        with no_grad():
            fake = g(data(4))
        update(od, d(data(4, 16)).sum() - d(fake).sum())
        if iteration == iterations:
            break
        og.zero_grad()
        update(og, d(g(data(4))).sum())


@loop([Step(critic_step(4), 8), Step(generator_step(4), 4)] * 5, period=2)
def gan():
    train_gan(5)


@loop([Step(critic_step(4), 8), Step(generator_step(4), 4)] * 40 + [Step(critic_step(4), 8)], period=2)
def gan_that_ends_inside():
    train_gan(40, rest=True)


@loop([Step(critic_step(4), 8), Step(generator_step(4), 4)] * 5, batches(10, 3, sizes=Z), period=2)
def gan_that_shows_samples():
    g, d = named("Generator", *Z), named("Discriminator", *X)
    og, od = sgd(g), sgd(d)
    for _ in range(5):
        update(od, d(data(4, 16)).sum() - d(g(data(4)).detach()).sum())
        update(og, d(g(data(4))).sum())
    validate(g, 3)


@loop(([Step(critic_step(4), 8)] * 3 + [Step(generator_step(4), 4)]) * 4, period=4)
def wgan_of_three():
    g, d = named("Generator", *Z), named("Critic", *X)
    og, od = sgd(g, kind="RMSprop"), sgd(d, kind="RMSprop")
    for _ in range(4):
        for _ in range(3):
            with no_grad():
                fake = g(data(4))
            update(od, d(data(4, 16)).sum() - d(fake).sum())
        update(og, d(g(data(4))).sum())


@loop(([Step(critic_step(4), 8)] * 5 + [Step(generator_step(4), 4)]) * 4, period=6)
def wgan_of_five():
    g, d = named("Generator", *Z), named("Critic", *X)
    og, od = sgd(g, kind="RMSprop"), sgd(d, kind="RMSprop")
    for _ in range(4):
        for _ in range(5):
            update(od, d(data(4, 16)).sum() - d(g(data(4)).detach()).sum())
        update(og, d(g(data(4))).sum())


@loop([Step(2 * generator_step(4), 4), Step(2 * critic_step(4), 8)] * 5, period=2)
def cycle_gan():
    g = named("ToB", *Z), named("ToA", *Z)
    d = named("JudgeB", *X), named("JudgeA", *X)
    og, od = sgd(*g, kind="Adam"), sgd(*d, kind="Adam")
    for _ in range(5):
        update(og, d[0](g[0](data(4))).sum() + d[1](g[1](data(4))).sum())
        with no_grad():
            fakes = [one(data(4)) for one in g]
        update(od, sum(one(data(4, 16)).sum() - one(fake).sum() for one, fake in zip(d, fakes)))


# --- Teachers, targets, backbones.
