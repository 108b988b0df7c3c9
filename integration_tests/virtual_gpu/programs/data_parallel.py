"""DataParallel on all devices, or on as many as the argument says."""
import sys

import torch
import torchvision

devices = list(range(int(sys.argv[1]) if len(sys.argv) > 1 else torch.cuda.device_count()))
for device in devices:
    torch.zeros(1, device=f"cuda:{device}")
model = torch.nn.DataParallel(torchvision.models.resnet18(), devices).cuda()
images, labels = torch.zeros(8, 3, 64, 64).cuda(), torch.zeros(8, dtype=torch.int64).cuda()
for _ in range(2):
    torch.nn.functional.cross_entropy(model(images), labels).backward()
print("devices", len(devices))
