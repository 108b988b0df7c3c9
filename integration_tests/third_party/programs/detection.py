"""torchvision's detectors as its references train them, which end when the loss is not finite.

    detection.py MODEL
"""
import math
import sys

import torch
import torchvision
from counted import counted

torch.manual_seed(0)
model = torchvision.models.get_model(sys.argv[1], weights=None, weights_backbone=None, num_classes=5).cuda().train()
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=1e-3, momentum=0.9)
for i in range(4):
    images = [torch.rand(3, 320, 320).cuda() for _ in range(2)]
    targets = [{"boxes": torch.tensor([[20.0, 30, 120, 160], [100, 90, 220, 260]]).cuda(), "labels": torch.tensor([1, 3]).cuda()}
               for _ in range(2)]
    with counted(i):
        losses = model(images, targets)
        loss = sum(losses.values())
        if not math.isfinite(loss.item()):
            sys.exit(f"loss is {loss.item()}: {losses}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
model.eval()
with torch.no_grad():
    print("found", len(model(images)[0]["boxes"]) >= 0)
