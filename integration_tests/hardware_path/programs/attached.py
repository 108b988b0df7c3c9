"""attached.py plain|compiled|ddp STOP: trains a small network on the GPU until there is a file STOP, and says "ready" after four
steps. With ddp it is a rank of a job."""
import os
import sys

import torch

way, stop = sys.argv[1:]
rank = int(os.environ.get("RANK", "0"))
torch.manual_seed(0)
if way == "ddp":
    torch.distributed.init_process_group("nccl")
    torch.cuda.set_device(rank)
net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 30 * 30, 4)).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
if way == "compiled":
    net = torch.compile(net)
if way == "ddp":
    net = torch.nn.parallel.DistributedDataParallel(net)
x = torch.ones(4, 3, 32, 32, device="cuda")


def step():
    loss = net(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


for _ in range(4):
    step()
if rank == 0:
    print("ready", flush=True)
going, number = True, 0
while going:
    step()
    going = not os.path.exists(stop)
    if way == "ddp":  # as long as the first rank does
        store, number = torch.distributed.distributed_c10d._get_default_store(), number + 1
        if rank == 0:
            store.set(f"step {number}", str(going))
        going = store.get(f"step {number}") == b"True"
if rank == 0:
    print("trained", flush=True)
if way == "ddp":
    torch.distributed.destroy_process_group()
