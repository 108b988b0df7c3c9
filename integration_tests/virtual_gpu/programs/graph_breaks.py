"""graph_breaks.py [infer]: five steps of a compiled network in which torch.compile ends a graph at two lines: a call that it
does not trace, after a tensor of ROWS x WIDE, and a number that is read, after one of ROWS x NARROW.
"""
import sys

import torch
from torch import nn

ROWS, NARROW, WIDE = 2048, 256, 1024


@torch._dynamo.disable
def not_traced():
    pass


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(NARROW, WIDE), nn.Linear(WIDE, NARROW), nn.Linear(NARROW, 1)

    def forward(self, x):
        x = torch.relu(self.a(x))
        not_traced()  # the first break
        x = torch.relu(self.b(x))
        if x.sum().item() == 1e9:  # the second break
            x = x + 1
        return self.c(x)


model = Net().cuda()
compiled = torch.compile(model)
x = torch.zeros(ROWS, NARROW).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(5):
    if "infer" in sys.argv:
        with torch.no_grad():
            compiled(x)
    else:
        optimizer.zero_grad()
        compiled(x).sum().backward()
        optimizer.step()
torch.cuda.synchronize()
print("compiled ok")
