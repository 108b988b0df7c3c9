"""One program of bench/compile_time: compiles a small residual network, trains it for a step, and prints the seconds of CPU
time, its children's included, that this step took.

It knows nothing about rfinject; the same file runs with and without. Inductor compiles in this process, and does not try
kernels out: how often it would launch them depends on how long the GPU says that they take, and what is measured here is
compiling. TORCHINDUCTOR_CACHE_DIR is empty at first.
"""
import resource

import torch
import torch._inductor.compile_fx
from torch import nn
from torch._inductor.runtime import triton_heuristics


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)
        self.conv2, self.bn2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)

    def forward(self, x):
        return torch.relu(self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x))))) + x)


def cpu_seconds():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


triton_heuristics.CachingAutotuner.bench = lambda self, *args, **kwargs: 1.0
torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, 32, 3, stride=2, padding=1), Residual(32), Residual(32), nn.Flatten(),
                      nn.Linear(32 * 16 * 16, 10)).cuda()
images, labels = torch.zeros(8, 3, 32, 32).cuda(), torch.zeros(8, dtype=torch.int64).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)


def step(network):
    optimizer.zero_grad()
    nn.functional.cross_entropy(network(images), labels).backward()
    optimizer.step()
    torch.cuda.synchronize()


step(model)  # what a first step costs without torch.compile is not measured
begin = cpu_seconds()
step(torch.compile(model))
print(cpu_seconds() - begin, flush=True)
