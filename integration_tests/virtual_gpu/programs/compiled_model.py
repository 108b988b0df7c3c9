"""compiled_model.py NETWORK [HOW]: five training steps of a network, on a GPU where torch sees one.

HOW: "compiled", or "leaves": each module without children is compiled by itself. Without it nothing is compiled.
"""
import collections
import sys

import torch
from compiled_leaves import compile_leaves
from torch import nn


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)

    def forward(self, x):
        return self.relu(self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x))))) + x)


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 32, 3, padding=1)
        self.layer1 = nn.Sequential(Residual(32), Residual(32))
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        return self.head(self.layer1(self.stem(x)).mean((2, 3)))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        rows, length, width = x.shape
        q, k, v = self.qkv(x).view(rows, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        x = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(x.transpose(1, 2).reshape(rows, length, width))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm1, self.attention, self.norm2 = nn.LayerNorm(width), Attention(width, 4), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(5000, 256)
        self.blocks = nn.ModuleList(Block(256) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(256), nn.Linear(256, 10)

    def forward(self, x):
        x = self.embedding(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)).mean(1)


class Perceptron(nn.Sequential):
    """Its forward is torch's own, not a method of the program's."""

    def __init__(self):
        super().__init__(collections.OrderedDict(
            fc1=nn.Linear(512, 512), bn1=nn.BatchNorm1d(512), act1=nn.ReLU(),
            fc2=nn.Linear(512, 512), bn2=nn.BatchNorm1d(512), act2=nn.ReLU(), head=nn.Linear(512, 10)))


if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 15):
    # Torch 2.9 and 2.6 compile no frame of torch.nn's.
    Perceptron.forward = lambda self, x: nn.Sequential.forward(self, x)

device = "cuda" if torch.cuda.is_available() else "cpu"
network, inputs = {
    "convolutions": (Convolutions, torch.zeros(16, 3, 32, 32)),
    "transformer": (Transformer, torch.zeros(4, 128, dtype=torch.long)),
    "perceptron": (Perceptron, torch.zeros(256, 512)),
}[sys.argv[1]]
torch.manual_seed(0)
model, inputs = network().to(device), inputs.to(device)
called = model
if "compiled" in sys.argv and network is Perceptron:
    model.compile()
elif "compiled" in sys.argv:
    called = torch.compile(model)
if "leaves" in sys.argv:
    compile_leaves(model)
targets = torch.zeros(len(inputs), dtype=torch.long, device=device)
criterion, optimizer = nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), 0.1)
for _ in range(5):
    optimizer.zero_grad()
    criterion(called(inputs), targets).backward()
    optimizer.step()
if device == "cuda":
    torch.cuda.synchronize()
print("trained")
