"""Training loops with several models or optimizers, beside the one of loops.py: teachers, target networks, actors and
critics, tasks in turn. Importing this adds them to loops.LOOPS."""
import copy

from loops import (A, STEP, Batch, Step, backward, batches, data, fit, forward, linear, loop, named, no_grad, sgd, through,
                   trained, update, validate)


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
