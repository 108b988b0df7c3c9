"""parallel.py STEPS ddp|fsdp|data_parallel: the same network on several GPUs; the first two under torchrun."""
import os
import sys

import models
import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel

steps, how = int(sys.argv[1]), sys.argv[2]
torch.manual_seed(0)
if how != "data_parallel":
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
model = models.UNet().cuda()
x, y = torch.zeros(4, 3, 32, 32).cuda(), torch.zeros(4, 32, 32, dtype=torch.int64).cuda()
if how == "data_parallel":
    model = torch.nn.DataParallel(model)
elif how == "ddp":
    model = torch.nn.parallel.DistributedDataParallel(model)
else:
    model = FullyShardedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
for _ in range(steps):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
torch.cuda.synchronize()
if how != "data_parallel":
    dist.barrier()
    dist.destroy_process_group()
print("trained\n", end="", flush=True)  # one write: ranks share the pipe, and torchrun does not buffer
