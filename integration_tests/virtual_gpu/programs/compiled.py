"""Six steps of a compiled model: compiled.py [MODE of torch.compile] [blocks], which are then compiled one by one."""
import sys

import torch
from torch import nn

ROWS, NARROW, WIDE = 4096, 512, 2048


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(NARROW, WIDE), nn.Linear(WIDE, NARROW)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)) * 2 + 1)


class Net(Block):
    pass


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


mode = sys.argv[1] if len(sys.argv) > 1 else "default"
if "blocks" in sys.argv:
    model = compiled = Deep().cuda()
    for block in model.blocks:
        block.compile(mode=mode)
else:
    model = Net().cuda()
    compiled = torch.compile(model, mode=mode)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
x = torch.zeros(ROWS, NARROW).cuda()
for _ in range(6):
    optimizer.zero_grad()
    compiled(x).sum().backward()
    optimizer.step()
torch.cuda.synchronize()
print("compiled ok")
