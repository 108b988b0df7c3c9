"""A search for the largest batch that fits: tries end in OutOfMemoryError, and two steps are made with what fits."""
import torch
import torch.nn as nn

net = nn.Sequential(nn.Linear(1024, 1024), nn.Linear(1024, 1024)).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=.1)
batch = 1 << 24
while True:
    try:
        for _ in range(2):
            optimizer.zero_grad()
            net(torch.zeros(batch, 1024, device="cuda")).sum().backward()
            optimizer.step()
        break
    except torch.OutOfMemoryError:
        batch //= 2
print("batch", batch)
