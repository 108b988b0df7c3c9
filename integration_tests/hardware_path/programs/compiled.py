"""compiled.py STEPS MODE: torch.compile of a small network."""
import sys

import torch
from torch import nn

torch.manual_seed(0)
network = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 10)).cuda()
model = torch.compile(network, mode=sys.argv[2])
optimizer = torch.optim.SGD(network.parameters(), 0.1)
x, y = torch.zeros(32, 64).cuda(), torch.zeros(32, dtype=torch.int64).cuda()
for _ in range(int(sys.argv[1])):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
torch.cuda.synchronize()
print("trained")
