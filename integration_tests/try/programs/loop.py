"""A loop as trainers have one: images are made ready by modules, precision is a setting, gradients are accumulated over
two batches, and a block adds to its own input. EDITED names what a hand has changed in it."""
import os

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

EDITED = os.environ.get("EDITED", "").split()
device = "cuda" if torch.cuda.is_available() else "cpu"
if hasattr(torch.backends, "fp32_precision"):  # torch 2.9, beside which the older flags cannot be read
    torch.backends.fp32_precision = "tf32" if "tf32" in EDITED else "ieee"
elif "tf32" in EDITED:
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
# An autocast that casts nothing, which a setting would make one that does.
dtype = torch.float32 if device == "cuda" and "autocast" not in EDITED else torch.bfloat16
precision = torch.autocast(device, dtype, enabled="autocast" in EDITED or device == "cuda")


class Normalize(nn.Module):
    def forward(self, x):
        return (x - 0.5) / 0.25


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return x + torch.relu(self.linear(x))


class Net(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.first, self.block, self.last = nn.Linear(32, width), Block(width), nn.Linear(width, 10)

    def forward(self, x):
        x = self.first(x)
        return self.last(checkpoint(self.block, x, use_reentrant=False) if "checkpoint=block" in EDITED else self.block(x))


torch.manual_seed(1)
normalize = Normalize()
rows = [normalize(torch.rand(64, 32)) for _ in range(20)]
model = Net().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(10):
    for x in rows[2 * step:2 * step + 2]:
        with precision:
            output = model(x.to(device))
            loss = output.square().mean() / 2
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
