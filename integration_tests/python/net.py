"""A small network that the suites of names and of steps train."""
import support

# A model with a container, a module that is used twice, and work of its own outside of every child.
NET = """
import torch
from torch import nn
import torch.nn.functional as F

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(4, 4, 3, padding=1)
        self.conv2 = nn.Conv2d(4, 4, 3, padding=1)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.conv2(self.relu(self.conv1(x))) + x)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.layer1 = nn.Sequential(Block(), Block())
        self.fc = nn.Linear(4, 5)

    def forward(self, x):
        x = self.layer1(self.stem(x))
        return self.fc(x.mean((2, 3)))

def train(model, steps=2, batch=2, loss=nn.CrossEntropyLoss()):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(model(torch.ones(batch, 3, 8, 8)), torch.zeros(batch, dtype=torch.long)).backward()
        optimizer.step()
"""

NET_PATHS = ["", "stem", "layer1", "layer1.0", "layer1.0.conv1", "layer1.0.conv2", "layer1.0.relu", "layer1.1",
             "layer1.1.conv1", "layer1.1.conv2", "layer1.1.relu", "fc"]


class NetTestCase(support.ForkedTestCase):
    def net(self, tail):
        return self.program(NET + tail).trace
