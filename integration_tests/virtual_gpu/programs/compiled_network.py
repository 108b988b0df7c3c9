"""compiled_network.py NETWORK [HOW]: five training steps of a network that people train, on a GPU.

HOW: "compiled", or "leaves": each module without children is compiled by itself, and nothing else is. Without it nothing is
compiled. Networks are those of hardware_path/programs/models.py, and "dcgan": two networks, of which one is called three
times a step.
"""
import pathlib
import sys

import torch
from torch import nn

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "hardware_path/programs"))
import models  # noqa: E402
from compiled_leaves import compile_leaves  # noqa: E402


def convolution(kind, inputs, outputs, stride=2, padding=1):
    return kind(inputs, outputs, 4, stride, padding, bias=False)


class Generator(nn.Module):
    """As people write it, with a forward of its own. Two networks that share one, as classes derived from nn.Sequential do,
    are one function to Dynamo, whose sizes change with each call of the other network."""

    def __init__(self, width=32):
        super().__init__()
        parts, channels = [], 100
        for i, factor in enumerate((8, 4, 2, 1)):
            parts += [convolution(nn.ConvTranspose2d, channels, factor * width, *((1, 0) if i == 0 else (2, 1))),
                      nn.BatchNorm2d(factor * width), nn.ReLU(True)]
            channels = factor * width
        self.main = nn.Sequential(*parts, convolution(nn.ConvTranspose2d, width, 3), nn.Tanh())

    def forward(self, noise):
        return self.main(noise)


class Discriminator(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        parts = [convolution(nn.Conv2d, 3, width), nn.LeakyReLU(0.2, True)]
        for factor in (1, 2, 4):
            parts += [convolution(nn.Conv2d, factor * width, 2 * factor * width), nn.BatchNorm2d(2 * factor * width),
                      nn.LeakyReLU(0.2, True)]
        self.main = nn.Sequential(*parts, convolution(nn.Conv2d, 8 * width, 1, 1, 0), nn.Sigmoid(), nn.Flatten(0))

    def forward(self, images):
        return self.main(images)


def dcgan():
    """The networks, and what is called for a step."""
    generator, discriminator = Generator().cuda(), Discriminator().cuda()
    of_generator, of_discriminator = (torch.optim.Adam(net.parameters(), 2e-4) for net in (generator, discriminator))
    loss = nn.BCELoss()
    real, noise = torch.zeros(16, 3, 64, 64).cuda(), torch.zeros(16, 100, 1, 1).cuda()
    ones, zeros = torch.ones(16).cuda(), torch.zeros(16).cuda()

    def step():
        fake = generator(noise)
        of_discriminator.zero_grad()
        loss(discriminator(real), ones).backward()
        loss(discriminator(fake.detach()), zeros).backward()
        of_discriminator.step()
        of_generator.zero_grad()
        loss(discriminator(fake), ones).backward()
        of_generator.step()
    return (generator, discriminator), step


def classifier(name):
    model, loss = models.MODELS[name]()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step():
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
    return (model,), step


torch.manual_seed(0)
nets, step = dcgan() if sys.argv[1] == "dcgan" else classifier(sys.argv[1])
for net in nets:
    if "compiled" in sys.argv:
        net.compile()
    elif "leaves" in sys.argv:
        compile_leaves(net)
for _ in range(5):
    step()
torch.cuda.synchronize()
print("trained")
