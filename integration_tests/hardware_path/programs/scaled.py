"""scaled.py STEPS: mixed precision with a loss scaler that leaves out every fourth optimizer step. Nothing is computed on
this GPU, so no gradient overflows; the program does what the scaler does when one has."""
import sys

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 8)).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
scaler = torch.amp.GradScaler("cuda") if hasattr(torch.amp, "GradScaler") else torch.cuda.amp.GradScaler()
inputs = torch.zeros(16, 64).cuda()
usual = scaler._maybe_opt_step
for step in range(int(sys.argv[1])):
    scaler._maybe_opt_step = (lambda *_, **__: None) if step % 4 == 1 else usual
    optimizer.zero_grad()
    with torch.autocast("cuda", torch.float16):
        loss = model(inputs).sum()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
torch.cuda.synchronize()
print("trained")
