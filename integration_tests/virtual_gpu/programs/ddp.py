"""Three steps of a layer whose gradient, 64 MiB, DDP averages over all ranks at once."""
import os

import torch
import torch.distributed as dist

dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4096, 4096, bias=False).cuda())
optimizer = torch.optim.SGD(model.parameters(), 0.1)
inputs = torch.zeros(8, 4096).cuda()
for _ in range(3):
    optimizer.zero_grad()
    model(inputs).sum().backward()
    optimizer.step()
torch.cuda.synchronize()
dist.barrier()
dist.destroy_process_group()
print("ddp ok", flush=True)
