"""graphed_layers.py eager|two|step: eight training steps of a network whose two blocks run the same kernels.

eager: without CUDA graphs. two: each block is a graph of its own, forward and backward (make_graphed_callables). step: from the
fifth on, a step is one graph, the optimizer's step in it.
"""
import sys

import torch
from torch import nn

ROWS, WIDTH = 512, 128


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.first, self.second, self.head = nn.Linear(WIDTH, WIDTH), Block(), Block(), nn.Linear(WIDTH, 10)

    def forward(self, x):
        return self.head(self.second(self.first(self.stem(x))))


model = Net().cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
x, labels = torch.zeros(ROWS, WIDTH).cuda(), torch.zeros(ROWS, dtype=torch.int64).cuda()


def step():
    optimizer.zero_grad(set_to_none=True)
    nn.functional.cross_entropy(model(x), labels).backward()
    optimizer.step()


if sys.argv[1] == "two":
    step()  # which tells that the model trains, before its blocks are called alone
    for name in ("first", "second"):
        sample = torch.zeros(ROWS, WIDTH).cuda().requires_grad_()
        setattr(model, name, torch.cuda.make_graphed_callables(getattr(model, name), (sample,)))
if sys.argv[1] == "step":
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(4):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    for _ in range(4):
        graph.replay()
else:
    for _ in range(7 if sys.argv[1] == "two" else 8):
        step()
torch.cuda.synchronize()
print("graphs ok")
