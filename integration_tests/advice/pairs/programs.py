"""Models and a training loop that the pairs share. Which of a pair runs is the first argument: fault or mended."""
import contextlib
import sys

import torch
from torch import nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BLOCKS = 4 if DEVICE == "cuda" else 1  # the CPU does compute
MENDED = sys.argv[1] == "mended"
STEPS = 3  # the first is left out of the report


class Attention(nn.Module):
    def __init__(self, width, heads, fused):
        super().__init__()
        self.heads, self.fused = heads, fused
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        if self.fused:
            mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        else:
            scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
            mixed = scores.softmax(-1) @ v
        return self.out(mixed.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, width, heads, fused):
        super().__init__()
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, fused)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.before(x))
        return x + self.mlp(self.after(x))


class Gpt(nn.Module):
    def __init__(self, words=1000, width=512, blocks=BLOCKS, heads=8, fused=False):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width, heads, fused) for _ in range(blocks))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words)
        self.run = lambda block, x: block(x)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = self.run(block, x)
        return self.head(self.norm(x)).flatten(0, 1)


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first, self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.Conv2d(
            channels, channels, 3, padding=1, bias=False)
        self.bn1, self.bn2, self.relu = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels), nn.ReLU()

    def forward(self, x):
        return self.relu(self.bn2(self.second(self.relu(self.bn1(self.first(x))))) + x)


class ConvNet(nn.Module):
    """A small residual network: a stem, blocks of convolution and batch normalization, a classifier."""

    def __init__(self, channels=64, blocks=4):
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 7, stride=4, padding=3, bias=False)
        self.norm, self.relu = nn.BatchNorm2d(channels), nn.ReLU()
        self.blocks = nn.Sequential(*(Residual(channels) for _ in range(blocks)))
        self.pool, self.head = nn.AdaptiveAvgPool2d(1), nn.Linear(channels, 100)

    def forward(self, images):
        return self.head(self.pool(self.blocks(self.relu(self.norm(self.stem(images))))).flatten(1))


def tokens(batch=BLOCKS, length=256):
    t = torch.randint(0, 1000, (batch, length), device=DEVICE)
    return t, t.flatten()


def images(batch=8, size=128, dtype=torch.float32):
    return torch.zeros(batch, 3, size, size, device=DEVICE, dtype=dtype), torch.zeros(batch, device=DEVICE, dtype=torch.int64)


def autocast(enabled=True):
    return torch.autocast(DEVICE, torch.bfloat16) if enabled else contextlib.nullcontext()


def train(model, batch, optimizer=None, half=False, **zero_grad):
    """Steps of a training loop. `optimizer` makes one of parameters; SGD where none is given."""
    model = model.to(DEVICE)
    optimizer = (optimizer or (lambda parameters: torch.optim.SGD(parameters, 0.1)))(model.parameters())
    inputs, labels = batch
    for _ in range(STEPS):
        with autocast(half):
            loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad(**({"set_to_none": True} | zero_grad))
        loss.backward()
        optimizer.step()


def infer(model, batch, half=False):
    model = model.to(DEVICE).eval()
    with torch.no_grad(), autocast(half):
        for _ in range(STEPS):
            model(batch[0])
