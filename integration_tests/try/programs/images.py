"""A classifier of images, as one writes it. EDITED names what a hand has changed in it: words of `rfinject try --list`."""
import os

import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

EDITED = os.environ.get("EDITED", "").split()
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
if "tf32" in EDITED:
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
if "cudnn-benchmark" in EDITED:
    torch.backends.cudnn.benchmark = True


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())
        self.layer2 = nn.Sequential(nn.Conv2d(16, 32, 3, padding=1, stride=2), nn.BatchNorm2d(32), nn.ReLU())
        self.fc = nn.Linear(32, 10)

    def forward(self, x):
        x = self.layer1(x)
        if "checkpoint=layer2" in EDITED and torch.is_grad_enabled():
            x = checkpoint(self.layer2, x, use_reentrant=False)
        else:
            x = self.layer2(x)
        return self.fc(x.mean((2, 3)))


torch.manual_seed(1)
data = TensorDataset(torch.randn(80, 3, 16, 16), torch.randint(0, 10, (80,)))
workers = 2 if "loader-workers=2" in EDITED else 0
loader = DataLoader(data, 8, shuffle=False, num_workers=workers, pin_memory="pin-memory" in EDITED)
model = Net().to(device)
if "channels-last" in EDITED:
    model = model.to(memory_format=torch.channels_last)
criterion = nn.CrossEntropyLoss()
options = {"fused": True} if "optimizer-fused" in EDITED else {"foreach": True} if "optimizer-foreach" in EDITED else {}
if options:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, **options)
else:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5)
if "compile" in EDITED:
    model.compile()

for epoch in range(2):
    model.train()
    for images, target in loader:
        images, target = images.to(device), target.to(device)
        if "channels-last" in EDITED:
            images = images.contiguous(memory_format=torch.channels_last)
        if "autocast" in EDITED:
            with torch.autocast(device.type, torch.bfloat16):
                output = model(images)
                loss = criterion(output, target)
        else:
            output = model(images)
            loss = criterion(output, target)
        if "set-to-none" in EDITED:
            optimizer.zero_grad(set_to_none=True)
        else:
            optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()
    scheduler.step()
    model.eval()
    for images, target in loader:
        images = images.to(device)
        if "channels-last" in EDITED:
            images = images.contiguous(memory_format=torch.channels_last)
        if "no-grad" in EDITED:
            with torch.no_grad():
                output = model(images)
        else:
            output = model(images)
    with open("checkpoint.pt", "wb") as file:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, file)
    torch.save(model.state_dict(), "weights.pt")
