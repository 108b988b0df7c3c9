"""Memory of known sizes: says what torch's allocator had given out at most."""
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide = nn.Linear(1024, 1024)
        self.relu = nn.ReLU()
        self.out = nn.Linear(1024, 10)

    def forward(self, x):
        return self.out(self.relu(self.wide(x)))


net = Net().cuda()
optimizer = torch.optim.Adam(net.parameters())
for _ in range(4):
    net(torch.ones(16384, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
print("peak", torch.cuda.max_memory_allocated())
