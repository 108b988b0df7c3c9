"""graphed.py STEPS WARM_UP eager|two|step: training steps of a network whose two blocks run the same kernels.

eager: without CUDA graphs. two: after WARM_UP steps each block is a graph of its own, forward and backward
(make_graphed_callables). step: after WARM_UP steps a step is one graph, the optimizer's step in it.
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


steps, warm_up, how = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
model = Net().cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
x, labels = torch.zeros(ROWS, WIDTH).cuda(), torch.zeros(ROWS, dtype=torch.int64).cuda()


def step():
    optimizer.zero_grad(set_to_none=True)
    nn.functional.cross_entropy(model(x), labels).backward()
    optimizer.step()


def graph_blocks():
    for name in ("first", "second"):
        sample = torch.zeros(ROWS, WIDTH).cuda().requires_grad_()
        # They have run, and need no other warming up.
        setattr(model, name, torch.cuda.make_graphed_callables(getattr(model, name), (sample,), num_warmup_iters=0))


if how == "step":
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(warm_up):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    for _ in range(steps):
        graph.replay()
else:
    for _ in range(warm_up):
        step()
    if how == "two":
        graph_blocks()
    for _ in range(steps):
        step()
torch.cuda.synchronize()
print("trained")
