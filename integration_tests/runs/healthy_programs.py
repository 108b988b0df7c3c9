"""Forty small programs that do nothing wrong, each in a process of its own: no alarm may be raised for any of them.

    healthy_programs.py        prints "NAME PID" for each; the traces are named after the process ids
"""
import gc
import os
import sys

import torch
import torch.nn.functional as F
from torch import nn

try:
    import torch._dynamo  # noqa: F401  each child's optimizer would import it
except ImportError:  # before torch 2
    pass

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def mlp(*sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def cnn(channels=8, classes=4):
    return nn.Sequential(nn.Conv2d(3, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU(),
                         nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1), nn.ReLU(),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2 * channels, classes))


def images(n=2, size=16):
    return torch.ones(n, 3, size, size)


def sgd(*models, kind=torch.optim.SGD, **options):
    parameters = [p for model in models for p in model.parameters() if p.requires_grad]
    return kind(parameters, lr=1e-3, **options)


def train(model, batch, optimizer=None, steps=3, loss=lambda out: out.pow(2).mean()):
    optimizer = optimizer or sgd(model)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(model(batch)).backward()
        optimizer.step()


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = self.qkv(x).view(n, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).softmax(-1)
        return self.out((scores @ v).transpose(1, 2).reshape(n, t, c))


class Block(nn.Module):
    def __init__(self, width=32, heads=4):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.norm2, self.mlp = nn.LayerNorm(width), mlp(width, 4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    def __init__(self, blocks=2, width=32, words=50):
        super().__init__()
        self.words, self.blocks = nn.Embedding(words, width), nn.Sequential(*[Block(width) for _ in range(blocks)])
        self.head = nn.Linear(width, words)

    def forward(self, x):
        return self.head(self.blocks(self.words(x)))


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.rnn, self.head = kind(8, 16, batch_first=True), nn.Linear(16, 4)

    def forward(self, x):
        return self.head(self.rnn(x)[0][:, -1])


@program
def linear_regression():
    train(nn.Linear(8, 1), torch.ones(4, 8))


@program
def mlp_classifier():
    train(mlp(64, 32, 16, 4), torch.ones(8, 64))


@program
def mlp_whose_first_layer_is_most_of_it():
    train(mlp(1024, 16, 4), torch.ones(8, 1024))


@program
def cnn_classifier():
    train(cnn(), images())


@program
def cnn_large():
    train(cnn(64), images(4, 64), steps=1)


@program
def cnn_of_one_image():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 14 * 14, 2))
    train(model, images(1))


@program
def grouped_convolutions():
    train(nn.Sequential(nn.Conv2d(3, 12, 1), nn.Conv2d(12, 12, 3, groups=12), nn.Conv2d(12, 6, 1)), images())


@program
def convolution_1d_and_3d():
    train(nn.Sequential(nn.Conv1d(3, 8, 3), nn.Conv1d(8, 8, 3)), torch.ones(2, 3, 20))
    train(nn.Sequential(nn.Conv3d(3, 4, 3), nn.Conv3d(4, 4, 3)), torch.ones(2, 3, 8, 8, 8))


@program
def segmentation():
    train(nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(), nn.ConvTranspose2d(8, 4, 2, stride=2)),
          images())


@program
def autoencoder():
    train(mlp(64, 16, 4, 16, 64), torch.ones(8, 64))


@program
def variational_autoencoder():
    encoder, decoder = mlp(64, 32, 8), mlp(4, 32, 64)
    optimizer = sgd(encoder, decoder, kind=torch.optim.Adam)
    for _ in range(3):
        optimizer.zero_grad()
        mean, spread = encoder(torch.ones(8, 64)).chunk(2, 1)
        (decoder(mean + spread.exp() * torch.randn_like(mean)).mean() + mean.pow(2).mean()).backward()
        optimizer.step()


@program
def gpt():
    train(Gpt(), torch.ones(2, 16, dtype=torch.long))


@program
def gpt_with_tied_weights():
    model = Gpt()
    model.head.weight = model.words.weight
    train(model, torch.ones(2, 16, dtype=torch.long))


@program
def transformer_encoder():
    train(nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2), torch.ones(2, 8, 32))


@program
def lstm():
    train(Recurrent(nn.LSTM), torch.ones(2, 6, 8))


@program
def gru():
    train(Recurrent(nn.GRU), torch.ones(2, 6, 8))


@program
def rnn():
    train(Recurrent(nn.RNN), torch.ones(2, 6, 8))


def adversarial(penalty):
    generator, critic = mlp(4, 16, 32), mlp(32, 16, 1)
    g, c = sgd(generator, kind=torch.optim.Adam), sgd(critic, kind=torch.optim.Adam)
    for _ in range(4):
        c.zero_grad()
        fake = generator(torch.randn(8, 4)).detach()
        loss = critic(fake).mean() - critic(torch.ones(8, 32)).mean()
        if penalty:
            between = torch.rand(8, 32, requires_grad=True)
            slope, = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
            loss = loss + (slope.norm(2, 1) - 1).pow(2).mean()
        loss.backward()
        c.step()
        g.zero_grad()
        (-critic(generator(torch.randn(8, 4))).mean()).backward()
        g.step()


@program
def gan():
    adversarial(penalty=False)


@program
def gan_with_gradient_penalty():
    adversarial(penalty=True)


@program
def gan_with_samples_under_no_grad():
    generator, critic = mlp(4, 16, 32), mlp(32, 16, 1)
    optimizer = sgd(critic)
    for _ in range(3):
        with torch.no_grad():
            fake = generator(torch.ones(8, 4))
        critic(fake).mean().backward()
        optimizer.step()


@program
def distillation():
    teacher, student = mlp(32, 64, 4).eval(), mlp(32, 8, 4)
    optimizer = sgd(student)
    for _ in range(3):
        with torch.no_grad():
            target = teacher(torch.ones(4, 32))
        (student(torch.ones(4, 32)) - target).pow(2).mean().backward()
        optimizer.step()


@program
def fine_tuning_of_the_head():
    model = cnn()
    for p in model[:-1].parameters():
        p.requires_grad = False
    train(model, images())


@program
def fine_tuning_of_the_first_layer():
    model = mlp(32, 32, 32, 4)
    for p in model[2:].parameters():
        p.requires_grad = False
    train(model, torch.ones(4, 32))


@program
def low_rank_adaptation():
    class Adapted(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.base, self.down, self.up = nn.Linear(width, width), nn.Linear(width, 2), nn.Linear(2, width)
            self.base.requires_grad_(False)

        def forward(self, x):
            return self.base(x) + self.up(self.down(x))

    train(nn.Sequential(Adapted(32), nn.ReLU(), Adapted(32)), torch.ones(4, 32))


@program
def moving_average_of_weights():
    import copy
    model = mlp(32, 16, 4)
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = sgd(model)
    for _ in range(3):
        train(model, torch.ones(4, 32), optimizer, steps=1)
        with torch.no_grad():
            for a, b in zip(average.parameters(), model.parameters()):
                a.lerp_(b, 0.1)
    average.eval()(torch.ones(4, 32))


@program
def accumulation():
    model = mlp(32, 16, 4)
    optimizer = sgd(model)
    for _ in range(3):
        for _ in range(4):
            model(torch.ones(4, 32)).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


@program
def clipping_and_momentum():
    model = mlp(32, 16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(4, 32)).mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def validated(steps, batches):
    model = cnn()
    optimizer = sgd(model)
    for _ in range(2):
        train(model.train(), images(), optimizer, steps)
        model.eval()
        with torch.no_grad():
            for _ in range(batches):
                model(images(4))


@program
def validation():
    validated(3, 2)


@program
def validation_longer_than_training():
    validated(1, 10)


@program
def inference():
    model = cnn().eval()
    with torch.no_grad():
        for _ in range(3):
            model(images())


@program
def inference_of_one_batch():
    with torch.no_grad():
        mlp(32, 4)(torch.ones(1, 32))


@program
def lbfgs():
    model = mlp(16, 4)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)

    def closure():
        optimizer.zero_grad()
        loss = model(torch.ones(4, 16)).pow(2).mean()
        loss.backward()
        return loss
    for _ in range(3):
        optimizer.step(closure)


@program
def checkpointed():
    from torch.utils.checkpoint import checkpoint

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = mlp(32, 32, 32), mlp(32, 4)

        def forward(self, x):
            return self.b(checkpoint(self.a, x, use_reentrant=False))
    train(Net(), torch.ones(4, 32, requires_grad=True))


@program
def mixed_precision():
    model = mlp(32, 16, 4)
    optimizer = sgd(model)
    for _ in range(3):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = model(torch.ones(4, 32)).mean()
        loss.backward()
        optimizer.step()


@program
def quantization_aware():
    class Rounded(nn.Linear):
        def forward(self, x):
            weight = torch.fake_quantize_per_tensor_affine(self.weight, 0.1, 0, -128, 127)
            return F.linear(x, weight, self.bias)
    train(nn.Sequential(Rounded(32, 16), nn.ReLU(), Rounded(16, 4)), torch.ones(4, 32))


@program
def two_towers():
    left, right = mlp(32, 16, 8), mlp(16, 16, 8)
    optimizer = sgd(left, right)
    for _ in range(3):
        optimizer.zero_grad()
        (left(torch.ones(4, 32)) @ right(torch.ones(4, 16)).T).softmax(1).mean().backward()
        optimizer.step()


@program
def siamese():
    model = mlp(32, 16, 8)
    optimizer = sgd(model)
    for _ in range(3):
        optimizer.zero_grad()
        (model(torch.ones(4, 32)) - model(torch.zeros(4, 32))).pow(2).mean().backward()
        optimizer.step()


@program
def detection():
    class Detector(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.boxes, self.classes = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 4, 1), nn.Conv2d(8, 2, 1)

        def forward(self, images):
            features = self.body(torch.stack(list(images))).relu()
            return self.boxes(features).mean() + self.classes(features).mean()
    train(Detector(), [torch.ones(3, 16, 16), torch.ones(3, 16, 16)], loss=lambda out: out)


@program
def embedding_bags():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.head = nn.EmbeddingBag(100, 8), mlp(8, 4, 1)

        def forward(self, x):
            return self.head(self.table(x))
    train(Net(), torch.ones(4, 3, dtype=torch.long))


@program
def functional_layers():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Parameter(torch.ones(32, 64)), nn.Parameter(torch.ones(64, 4))

        def forward(self, x):
            return (x @ self.a).relu() @ self.b
    train(Net(), torch.ones(4, 32))


def run_all(programs):
    """Runs those that the arguments name, or all."""
    gc.freeze()  # else each child looks at all of torch's objects again when it ends
    for name in sys.argv[1:] or list(programs):
        child = os.fork()
        if child == 0:
            programs[name]()
            os._exit(0)  # what Python and torch would take down costs more than most programs
        _, status = os.waitpid(child, 0)
        print(name, child, flush=True)
        if status != 0:
            sys.exit(f"{name} failed")


if __name__ == "__main__":
    run_all(PROGRAMS)
