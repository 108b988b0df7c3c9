"""Trains a chain of small layers.

    chain.py STEPS [waits]: reads the loss after each step
"""
import sys

import torch
from torch import nn

model = nn.Sequential(*[nn.Linear(64, 64) for _ in range(40)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.ones(32, 64, device="cuda")
for _ in range(int(sys.argv[1])):
    optimizer.zero_grad()
    loss = model(x).sum()
    loss.backward()
    optimizer.step()
    if "waits" in sys.argv:
        loss.item()
