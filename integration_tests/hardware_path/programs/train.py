"""train.py NETWORK STEPS: a training loop, hard-coded to CUDA."""
import sys

import models
import torch

torch.manual_seed(0)
model, loss_of = models.MODELS[sys.argv[1]]()
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
scaler = torch.amp.GradScaler("cuda", enabled=sys.argv[1] == "gpt_amp")
for _ in range(int(sys.argv[2])):
    optimizer.zero_grad()
    scaler.scale(loss_of()).backward()
    scaler.step(optimizer)
    scaler.update()
torch.cuda.synchronize()
print("trained")
