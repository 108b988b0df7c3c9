"""A network whose first layer runs on the host."""
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.host = nn.Linear(64, 64)
        self.gpu = nn.Linear(64, 64).cuda()

    def forward(self, x):
        return self.gpu(self.host(x).cuda())


net = Net()
with torch.no_grad():
    net(torch.zeros(8, 64))
