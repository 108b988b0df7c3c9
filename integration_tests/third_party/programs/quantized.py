"""bitsandbytes: an 8-bit optimizer, and layers of 4 bits under LoRA's matrices."""
import bitsandbytes as bnb
import torch
from torch import nn

model = nn.Sequential(bnb.nn.Linear4bit(256, 1024, compute_dtype=torch.bfloat16), nn.GELU(),
                      bnb.nn.Linear4bit(1024, 256, compute_dtype=torch.bfloat16), nn.Linear(256, 256)).cuda()
optimizer = bnb.optim.AdamW8bit([p for p in model.parameters() if p.is_floating_point() and p.requires_grad], lr=1e-4)
for _ in range(4):
    loss = model(torch.randn(64, 256).cuda()).float().square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("loss", loss.item())
