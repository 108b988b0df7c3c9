"""Ways in which people train, each with several models, each in a process of its own: no alarm may be raised.

    healthy_ways.py        prints "NAME PID" for each; the traces are named after the process ids
"""
import contextlib
import copy

import torch
import torch.nn.functional as F
from healthy_programs import Block, cnn, images, mlp, run_all, sgd
from torch import nn
from torch.utils.checkpoint import checkpoint

try:
    from torch.func import functional_call
except ImportError:  # before torch 2
    from torch.nn.utils.stateless import functional_call


class Trunk(nn.Module):
    """A model in two parts, whose first the ways may use more than once."""

    def __init__(self, trunk, width):
        super().__init__()
        self.trunk, self.head, self.second = trunk, nn.Linear(width, 4), nn.Linear(width, 3)

    def forward(self, x):
        return self.head(self.trunk(x))


def autoencoder():
    return nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(),
                         nn.ConvTranspose2d(8, 8, 4, stride=2, padding=1), nn.Flatten(), nn.Linear(8 * 256, 16))


class Last(nn.Module):
    def __init__(self, inner, *index):
        super().__init__()
        self.inner, self.index = inner, index

    def forward(self, x):
        return self.inner(x)[0][:, -1] if self.index else self.inner(x).mean(1)


# Name, (trunk, width of its result, input).
MODELS = {
    "mlp": lambda: (mlp(64, 48, 32), 32, torch.ones(8, 64)),
    "cnn": lambda: (cnn(8, 24), 24, images(4)),
    "autoencoder": lambda: (autoencoder(), 16, images(4)),
    "attention": lambda: (Last(nn.Sequential(Block(), Block())), 32, torch.ones(2, 6, 32)),
    "encoder": lambda: (Last(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)), 32, torch.ones(2, 6, 32)),
    "lstm": lambda: (Last(nn.LSTM(24, 16, batch_first=True), 0), 16, torch.ones(4, 5, 24)),
}
WAYS = {}


def way(function):
    WAYS[function.__name__] = function
    return function


def step(optimizer, *losses):
    optimizer.zero_grad()
    for loss in losses:
        loss.backward()
    optimizer.step()


def repeat(net, x, loss, steps=3, optimizer=None):
    optimizer = optimizer or sgd(net)
    for _ in range(steps):
        step(optimizer, loss(net, x))


def square(net, x):
    return net(x).square().mean()


@way
def plain(net, x):
    repeat(net, x, square)


@way
def two_heads_one_after_the_other(net, x):
    optimizer = sgd(net)
    for _ in range(3):
        optimizer.zero_grad()
        features = net.trunk(x)
        net.head(features).square().mean().backward(retain_graph=True)
        net.second(features).square().mean().backward()
        optimizer.step()


@way
def gradients_of_each_task(net, x):
    """As methods that weigh tasks by their gradients do: three backwards of the trunk a step."""
    optimizer = sgd(net)
    for _ in range(3):
        optimizer.zero_grad()
        features = net.trunk(x)
        losses = [net.head(features).square().mean(), net.second(features).square().mean(), features.square().mean()]
        shared = list(net.trunk.parameters())
        for loss in losses:
            torch.autograd.grad(loss, shared, retain_graph=True, allow_unused=True)
        sum(losses).backward()
        optimizer.step()


@way
def logits_outside(net, x):
    """CLIP's: the product of two models' features, in the training loop."""
    def loss(net, x):
        a, b = net.trunk(x), net.head.weight.new_ones(1) * net.trunk(x + 1)
        logits = F.normalize(a.flatten(1)) @ F.normalize(b.flatten(1)).t() * 10
        return F.cross_entropy(logits, torch.arange(len(x)))
    repeat(net, x, loss)


@way
def wide_logits_outside(net, x):
    """A vocabulary whose weights are no module's: most of the work is outside."""
    words = nn.Parameter(torch.ones(net.head.in_features, 512))
    optimizer = torch.optim.SGD([*net.parameters(), words], lr=1e-3)
    repeat(net, x, lambda net, x: (net.trunk(x).flatten(1) @ words).logsumexp(1).mean() + net(x).mean(),
           optimizer=optimizer)


@way
def gram_loss(net, x):
    """Style transfer: the image is what trains, the network is frozen, products of features are outside."""
    net.requires_grad_(False)
    image = nn.Parameter(x.clone())
    optimizer = torch.optim.SGD([image], lr=0.1)
    for _ in range(3):
        features = net.trunk(image)
        gram = features.flatten(1)[:, :, None] @ features.flatten(1)[:, None]
        step(optimizer, gram.square().mean() + net(image).mean())


@way
def functional(net, x):
    """Without a module that is called: weights in a list, functions in a loop."""
    weights = [nn.Parameter(torch.ones(x[0].numel(), 32)), nn.Parameter(torch.ones(32, 4))]
    optimizer = torch.optim.SGD(weights, lr=1e-3)
    for _ in range(3):
        step(optimizer, (torch.relu(x.flatten(1) @ weights[0]) @ weights[1]).square().mean())


@way
def functional_beside_a_model(net, x):
    weights = [nn.Parameter(torch.ones(net.head.in_features, 32)), nn.Parameter(torch.ones(32, 4))]
    optimizer = torch.optim.SGD([*net.parameters(), *weights], lr=1e-3)
    repeat(net, x, lambda net, x: (net.trunk(x).flatten(1) @ weights[0] @ weights[1]).square().mean() + net(x).mean(),
           optimizer=optimizer)


@way
def maml(net, x):
    """A step of the inner loop by torch.autograd.grad, and the gradient through it."""
    optimizer = sgd(net)
    names = [name for name, _ in net.named_parameters() if not name.startswith("second")]
    for _ in range(3):
        weights = {name: p for name, p in net.named_parameters() if name in names}
        inner = functional_call(net, weights, (x,)).square().mean()
        gradients = torch.autograd.grad(inner, list(weights.values()), create_graph=True)
        adapted = {name: p - 0.1 * g for (name, p), g in zip(weights.items(), gradients)}
        step(optimizer, functional_call(net, adapted, (x,)).square().mean())


@way
def maml_without_a_module(net, x):
    weights = [nn.Parameter(torch.ones(x[0].numel(), 32)), nn.Parameter(torch.ones(32, 4))]
    optimizer = torch.optim.SGD(weights, lr=1e-3)

    def loss(a, b):
        return (torch.relu(x.flatten(1) @ a) @ b).square().mean()
    for _ in range(3):
        adapted = weights
        for _ in range(2):
            gradients = torch.autograd.grad(loss(*adapted), adapted, create_graph=True)
            adapted = [w - 0.1 * g for w, g in zip(adapted, gradients)]
        step(optimizer, loss(*adapted))


@way
def first_order_maml(net, x):
    optimizer = sgd(net)
    for _ in range(3):
        fast = copy.deepcopy(net)
        inner = sgd(fast)
        step(inner, square(fast, x))
        loss = square(fast, x)
        gradients = torch.autograd.grad(loss, list(fast.parameters()), allow_unused=True)
        optimizer.zero_grad()
        for p, g in zip(net.parameters(), gradients):
            p.grad = g
        optimizer.step()


@contextlib.contextmanager
def bfloat16():
    # Torch asks oneDNN for an LSTM in bfloat16 on every processor, and it has one only for those with AVX-512.
    has_lstm = getattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: True)()  # not before torch 2
    with torch.backends.mkldnn.flags(enabled=has_lstm), torch.autocast("cpu", torch.bfloat16):
        yield


@way
def autocast(net, x):
    optimizer = sgd(net)
    for _ in range(3):
        with bfloat16():
            loss = square(net, x)
        step(optimizer, loss)


@way
def backward_under_autocast(net, x):
    optimizer = sgd(net)
    for _ in range(3):
        with bfloat16():
            step(optimizer, square(net, x))


@way
def accumulation(net, x):
    optimizer = sgd(net)
    for _ in range(3):
        optimizer.zero_grad()
        for part in x.chunk(2):
            (square(net, part) / 2).backward()
        optimizer.step()


@way
def checkpointed(net, x):
    repeat(net, x, lambda net, x: net.head(checkpoint(net.trunk, x.requires_grad_(), use_reentrant=False)).mean())


@way
def frozen_trunk(net, x):
    net.trunk.requires_grad_(False)
    repeat(net, x, square)


@way
def distillation(net, x):
    teacher = copy.deepcopy(net).eval()

    def loss(net, x):
        with torch.no_grad():
            wanted = teacher(x)
        return F.mse_loss(net(x), wanted)
    repeat(net, x, loss)


@way
def siamese(net, x):
    repeat(net, x, lambda net, x: F.cosine_embedding_loss(net(x), net(x + 1), torch.ones(len(x))))


@way
def gradient_penalty(net, x):
    def loss(net, x):
        x = x.clone().requires_grad_()
        gradient, = torch.autograd.grad(net(x).sum(), x, create_graph=True)
        return gradient.square().mean()
    with torch.backends.mkldnn.flags(enabled=False):
        repeat(net, x, loss)


@way
def closure(net, x):
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=2)

    def evaluate():
        optimizer.zero_grad()
        loss = square(net, x)
        loss.backward()
        return loss
    for _ in range(3):
        optimizer.step(evaluate)


@way
def sharpness_aware(net, x):
    """Two forwards and two backwards a step."""
    optimizer = sgd(net)
    for _ in range(3):
        optimizer.zero_grad()
        square(net, x).backward()
        with torch.no_grad():
            moves = [(p, p.grad * 0.01) for p in net.parameters() if p.grad is not None]
            for p, move in moves:
                p.add_(move)
        optimizer.zero_grad()
        square(net, x).backward()
        with torch.no_grad():
            for p, move in moves:
                p.sub_(move)
        optimizer.step()


@way
def adversarial_examples(net, x):
    def loss(net, x):
        x = x.clone().requires_grad_()
        gradient, = torch.autograd.grad(square(net, x), x)
        return square(net, (x + 0.1 * gradient.sign()).detach())
    repeat(net, x, loss)


@way
def validation_between(net, x):
    optimizer = sgd(net)
    for _ in range(3):
        step(optimizer, square(net, x))
        net.eval()
        with torch.inference_mode():
            net(x)
        net.train()


def main():
    programs = {}
    for model, make in MODELS.items():
        for name, train in WAYS.items():
            # cuDNN's and oneDNN's recurrent layers have no second derivative.
            if model == "lstm" and name in ("maml", "gradient_penalty"):
                continue

            def program(make=make, train=train):
                trunk, width, x = make()
                train(Trunk(trunk, width), x)
            programs[f"{name}_{model}"] = program
    run_all(programs)


if __name__ == "__main__":
    main()
