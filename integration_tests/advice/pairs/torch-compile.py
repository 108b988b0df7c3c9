"""Norms and activations spelled out as element-wise operators, each of which is a kernel of its own."""
import torch
from torch import nn

from programs import DEVICE, MENDED, train


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Gelu(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x * x * x)))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.act, self.down = RmsNorm(width), nn.Linear(width, 4 * width), Gelu(), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(self.act(self.up(self.norm(x))))


width, rows = 512, 4096
model = nn.Sequential(*(Block(width) for _ in range(4)), RmsNorm(width), nn.Linear(width, 100))
train(torch.compile(model) if MENDED else model,
      (torch.zeros(rows, width, device=DEVICE), torch.zeros(rows, dtype=torch.int64, device=DEVICE)))
