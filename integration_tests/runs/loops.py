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


@loop([Step(critic_step(4), 8), Step(generator_step(4), 4)] * 5, period=2)
def gan():
    g, d = named("Generator", *Z), named("Discriminator", *X)
    og, od = sgd(g, kind="Adam"), sgd(d, kind="Adam")
    for _ in range(5):
        with no_grad():
            fake = g(data(4))
        update(od, d(data(4, 16)).sum() - d(fake).sum())
        og.zero_grad()
        update(og, d(g(data(4))).sum())


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

@loop([Step(trained(4, *A) + forward(4, 8, 32, 4), 4)] * 6)
def distillation():
    teacher, student = named("Teacher", 8, 32, 4).eval(), linear(*A)
    optimizer = sgd(student)
    for _ in range(6):
        with no_grad():
            target = teacher(data(4))
        update(optimizer, (student(data(4)) * target).sum())


@loop([Step(trained(4, *A) + forward(4, 8, 32, 4), 4)] * 6, batches(3, 5) + batches(6, 5))
def distillation_with_validation():
    teacher, student = named("Teacher", 8, 32, 4).eval(), linear(*A)
    optimizer = sgd(student)
    for _ in range(2):
        student.train()
        for _ in range(3):
            out = student(data(4))
            with no_grad():
                target = teacher(data(4))
            update(optimizer, (out * target).sum())
        validate(student, 5)


@loop([Step(trained(4, *A) + forward(4, *A), 4)] * 6)
def distillation_of_itself():
    student = linear(*A)
    teacher = copy.deepcopy(student).eval()
    optimizer = sgd(student)
    for _ in range(6):
        with no_grad():
            target = teacher(data(4))
        update(optimizer, (student(data(4)) * target).sum())


@loop([Step(trained(4, *A) + forward(4, *A), 4)] * 6, batches(3, 5) + batches(6, 5))
def mean_teacher():
    student = linear(*A)
    teacher = copy.deepcopy(student)
    optimizer = sgd(student)
    for _ in range(2):
        student.train()
        for _ in range(3):
            out = student(data(4))
            with no_grad():
                target = teacher(data(4))
            update(optimizer, (out - target).pow(2).sum())
            with no_grad():
                for t, p in zip(teacher.parameters(), student.parameters()):
                    t.lerp_(p, 0.1)
        student.eval()
        validate(student, 5)


@loop([Step(2 * trained(4, *A) + 2 * forward(4, *A), 8)] * 6)
def two_views_and_their_target():
    online = linear(*A)
    target = copy.deepcopy(online).requires_grad_(False)
    optimizer = sgd(online)
    for _ in range(6):
        views = online(data(4)), online(data(4))
        with no_grad():
            one, other = target(data(4)), target(data(4))
        update(optimizer, (views[0] * other + views[1] * one).sum())


@loop([Step(trained(4, *A) + forward(4, *A), 4)] * 6)
def momentum_contrast():
    query = linear(*A)
    key = copy.deepcopy(query).requires_grad_(False)
    optimizer = sgd(query)
    for _ in range(6):
        q = query(data(4))
        with no_grad():
            k = key(data(4))
        update(optimizer, (q * k).sum())


@loop([Step(trained(4, *A) + forward(4, *A), 4)] * 8)
def dqn():
    policy = linear(*A)
    target = copy.deepcopy(policy).eval()
    optimizer = sgd(policy)
    for i in range(8):
        q = policy(data(4))
        with no_grad():
            best = target(data(4)).max(1)[0]
        update(optimizer, (q.max(1)[0] - best).pow(2).sum())
        if i % 3 == 2:
            target.load_state_dict(policy.state_dict())


@loop([Step(trained(4, *A) + forward(4, *A), 4)] * 8)
def dqn_whose_target_comes_first():
    policy = linear(*A)
    target = copy.deepcopy(policy)
    optimizer = sgd(policy)
    for _ in range(8):
        with no_grad():
            best = target(data(4)).max(1)[0]
        update(optimizer, (policy(data(4)).max(1)[0] - best).pow(2).sum())


@loop([Step(trained(4, *A) + forward(4, *A), 4)] * 4,
      [b for i in range(4) for b in batches(i, 5 if i == 0 else 2, b=1)])
def dqn_that_acts():
    policy = linear(*A)
    target = copy.deepcopy(policy).eval()
    optimizer = sgd(policy)
    for i in range(4):
        with no_grad():
            for _ in range(5 if i == 0 else 2):
                policy(data(1)).argmax(1)
        q = policy(data(4))
        with no_grad():
            best = target(data(4)).max(1)[0]
        update(optimizer, (q.max(1)[0] - best).pow(2).sum())


@loop([Step(trained(4, *A) + 2 * forward(4, *A), 8)] * 6)
def double_dqn():
    policy = linear(*A)
    target = copy.deepcopy(policy)
    optimizer = sgd(policy)
    for _ in range(6):
        q = policy(data(4))
        with no_grad():
            action = policy(data(4)).argmax(1, keepdim=True)
            best = target(data(4)).gather(1, action)
        update(optimizer, (q.max(1, keepdim=True)[0] - best).pow(2).sum())


@loop([Step(trained(4, 16, 4) + forward(4, 8, 16), 4)] * 6,
      [Batch(after, forward(10, 8, 16) + forward(10, 16, 4), 10) for after in (3, 6) for _ in range(5)])
def frozen_backbone():
    backbone, head = named("Backbone", 8, 16).eval(), named("Head", 16, 4)
    optimizer = sgd(head)
    for _ in range(2):
        head.train()
        for _ in range(3):
            with no_grad():
                features = backbone(data(4))
            update(optimizer, head(features).sum())
        head.eval()
        with no_grad():
            for _ in range(5):
                head(backbone(data(10)))


@loop([Step(trained(4, 16, 4) + forward(4, 8, 16), 4)] * 6,
      [Batch(after, forward(10, 8, 16) + forward(10, 16, 4), 10) for after in (3, 6) for _ in range(5)])
def frozen_backbone_with_gradients_around_it():
    backbone, head = named("Backbone", 8, 16).eval().requires_grad_(False), named("Head", 16, 4)
    optimizer = sgd(head)
    for _ in range(2):
        for _ in range(3):
            update(optimizer, head(backbone(data(4))).sum())
        with no_grad():
            for _ in range(5):
                head(backbone(data(10)))


@loop([Step(trained(4, 8, 16) + 2 * forward(4, 16, 4) + through(4, 16, 4), 8)] * 6)
def perceptual_loss():
    net, judge = named("Net", 8, 16), named("Judge", 16, 4).eval().requires_grad_(False)
    optimizer = sgd(net)
    for _ in range(6):
        with no_grad():
            wanted = judge(data(4, 16))
        update(optimizer, (judge(net(data(4))) * wanted).sum())


@loop([STEP] * 6, [Batch(after, forward(5, 16, 4), 5) for after in (3, 6) for _ in range(2)])
def a_judge_of_another_class_now_and_then():
    net, judge = linear(*A), named("Judge", 16, 4).eval()
    optimizer = sgd(net)
    for _ in range(2):
        fit(net, optimizer, 3)
        with no_grad():
            for _ in range(2):
                judge(data(5, 16))


@loop([Step(2 * trained(4, *A) + forward(4, *A), 12)] * 6)
def labels_of_its_own():
    net = linear(*A)
    optimizer = sgd(net)
    for _ in range(6):
        known = net(data(4)).sum()
        with no_grad():
            label = net(data(4)).argmax(1, keepdim=True)
        update(optimizer, known + net(data(4)).gather(1, label).sum())


# --- Several models, tasks and phases.

@loop([Step(trained(4, 8, 3) + forward(4, 3, 8) + backward(4, 3, 8, into_input=True), 4)] * 6,
      [Batch(6, forward(10, 8, 3, 8), 10) for _ in range(3)])
def autoencoder_of_two_models():
    encoder, decoder = named("Encoder", 8, 3), named("Decoder", 3, 8)
    optimizer = sgd(encoder, decoder)
    for _ in range(6):
        update(optimizer, decoder(encoder(data(4))).sum())
    encoder.eval(), decoder.eval()
    with no_grad():
        for _ in range(3):
            decoder(encoder(data(10)))


@loop([Step(trained(4, 8, 16) + forward(4, 16, 4) + backward(4, 16, 4, into_input=True), 4),
       Step(trained(4, 8, 16) + forward(4, 16, 2) + backward(4, 16, 2, into_input=True), 4)] * 5, period=2)
def alternating_tasks():
    body, one, other = named("Body", 8, 16), named("One", 16, 4), named("Other", 16, 2)
    optimizer = sgd(body, one, other)
    for i in range(10):
        head = one if i % 2 == 0 else other
        update(optimizer, head(body(data(4))).sum())


@loop([Step(trained(4, 8, 16) + forward(4, 16, 4) + backward(4, 16, 4, into_input=True)
            + forward(4, 16, 2) + backward(4, 16, 2, into_input=True), 4)] * 6)
def two_heads():
    body, one, other = named("Body", 8, 16), named("One", 16, 4), named("Other", 16, 2)
    optimizer = sgd(body, one, other)
    for _ in range(6):
        features = body(data(4))
        update(optimizer, one(features).sum() + other(features).sum())


@loop([Step(2 * trained(4, *A), 8)] * 6)
def siamese():
    net = linear(*A)
    optimizer = sgd(net)
    for _ in range(6):
        update(optimizer, (net(data(4)) * net(data(4))).sum())


@loop([Step(forward(4, 8, 16) + forward(4, 16, 4) + 2 * 4 * 16 * 4, 4)] * 3 + [STEP] * 4)
def warm_start():
    net = linear(*A)
    net[0].requires_grad_(False)
    optimizer = sgd(net[1])
    fit(net, optimizer, 3)
    net[0].requires_grad_(True)
    optimizer.add_param_group({"params": net[0].parameters()})
    fit(net, optimizer, 4)


@loop([STEP] * 3 + [Step(trained(2, *A), 2)] * 4, batches(3, 2) + batches(7, 2))
def pretraining_and_fine_tuning():
    net = linear(*A)
    fit(net, sgd(net), 3)
    validate(net, 2)
    fit(net, sgd(net, kind="Adam"), 4, b=2)
    validate(net, 2)


@loop([STEP, Step(0, 0)] * 5, period=2)
def two_optimizers_after_one_backward():
    net = linear(*A)
    one, other = sgd(net[0]), sgd(net[1], kind="Adam")
    for _ in range(5):
        net.zero_grad()
        net(data(4)).sum().backward()
        one.step()
        other.step()


@loop([STEP] * 4)
def lbfgs():
    import torch
    net = linear(*A)
    optimizer = torch.optim.LBFGS(net.parameters(), lr=1e-4, max_iter=1)

    def closure():
        optimizer.zero_grad()
        loss = net(data(4)).sum()
        loss.backward()
        return loss
    for _ in range(4):
        optimizer.step(closure)


@loop([STEP] * 6, batches(3, 2) + batches(6, 2))
def loaders_for_both():
    import torch
    net = linear(*A)
    optimizer = sgd(net)
    training = torch.utils.data.DataLoader(torch.ones(12, 8), batch_size=4)
    testing = torch.utils.data.DataLoader(torch.ones(20, 8), batch_size=10)
    for _ in range(2):
        net.train()
        for x in training:
            update(optimizer, net(x).sum())
        net.eval()
        with no_grad():
            for x in testing:
                net(x)


# --- Policies.

@loop([Step(trained(6, *A), 6)] * 9,
      [b for i in (0, 3, 6) for b in batches(i, 6, b=1)])
def ppo():
    policy = linear(*A)
    optimizer = sgd(policy, kind="Adam")
    for _ in range(3):
        with no_grad():
            for _ in range(6):
                policy(data(1)).softmax(1)
        for _ in range(3):
            update(optimizer, policy(data(6)).softmax(1).sum())


@loop([Step(trained(6, *A), 6)] * 9,
      [b for i in (0, 3, 6) for b in batches(i, 6, b=1)])
def ppo_with_an_old_policy():
    policy = linear(*A)
    old = copy.deepcopy(policy)
    optimizer = sgd(policy, kind="Adam")
    for _ in range(3):
        with no_grad():
            for _ in range(6):
                old(data(1)).softmax(1)
        for _ in range(3):
            update(optimizer, policy(data(6)).softmax(1).sum())
        old.load_state_dict(policy.state_dict())


@loop([Step(5 * trained(1, *A), 5)] * 5)
def reinforce():
    policy = linear(*A)
    optimizer = sgd(policy)
    for _ in range(5):
        update(optimizer, sum(policy(data(1)).sum() for _ in range(5)))


@loop([Step(trained(4, *A) + trained(4, 8, 16, 1), 4)] * 6)
def actor_and_critic():
    actor, critic = named("Actor", *A), named("Critic", 8, 16, 1)
    optimizer = sgd(actor, critic)
    for _ in range(6):
        update(optimizer, (actor(data(4)) * critic(data(4))).sum())


ACTOR, CRITIC = (8, 16, 8), (8, 16, 1)
CRITIC_STEP = Step(forward(4, *ACTOR) + forward(4, *CRITIC) + trained(4, *CRITIC), 4)
ACTOR_STEP = Step(trained(4, *ACTOR) + forward(4, *CRITIC) + backward(4, *CRITIC, into_input=True), 4)


def actor_critic(iterations, delay, target_of_actor):
    actor, critic = named("Actor", *ACTOR), named("Critic", *CRITIC)
    oa, oc = sgd(actor, kind="Adam"), sgd(critic, kind="Adam")
    target = copy.deepcopy(critic)
    acting = copy.deepcopy(actor) if target_of_actor else actor
    for _ in range(iterations):
        for _ in range(delay):
            with no_grad():
                value = target(acting(data(4)))
            update(oc, (critic(data(4)) - value).pow(2).sum())
        update(oa, critic(actor(data(4))).sum())


@loop([CRITIC_STEP, ACTOR_STEP] * 5, period=2)
def soft_actor_critic():
    actor_critic(5, 1, False)


@loop([CRITIC_STEP, CRITIC_STEP, ACTOR_STEP] * 4, period=3)
def td3():
    actor_critic(4, 2, True)


# --- Gradients of gradients, and models that live for an iteration.

@loop([Step(2 * trained(2, *A), 4), Step(2 * trained(2, *A), 4), Step(0, 0)] * 4, period=3)
def reptile():
    net = linear(*A)
    meta = sgd(net)
    for _ in range(4):
        learner = copy.deepcopy(net)
        inner = sgd(learner)
        for _ in range(2):
            update(inner, (learner(data(2)) * learner(data(2))).sum())
        for p, q in zip(net.parameters(), learner.parameters()):
            p.grad = (p - q).detach()
        meta.step()


@loop([Step(2 * trained(4, 8, 16), 8)] * 6)
def maml():
    import torch
    net = named("Meta", 8, 16)
    weight = net[0].weight
    optimizer = sgd(net)
    for _ in range(6):
        inner = net(data(4)).sum()
        gradient, = torch.autograd.grad(inner, weight, create_graph=True)
        weight.grad = None
        (net(data(4)) * gradient.sum()).sum().backward()
        optimizer.step()
