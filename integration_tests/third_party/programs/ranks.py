"""Two ranks by torchrun: DistributedDataParallel, FSDP, or fully_shard on a small transformer.

    torchrun --nproc_per_node 2 ranks.py ddp|fsdp|fsdp2|zero
"""
import os
import sys

import torch
import torch.distributed as dist
from counted import counted
from torch import nn

kind, rank = sys.argv[1], int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
model = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).cuda()
Optimizer = torch.optim.AdamW
if kind == "fsdp":
    from torch.distributed.fsdp import FullyShardedDataParallel
    model = FullyShardedDataParallel(model)
elif kind == "fsdp2":
    from torch.distributed.fsdp import fully_shard
    for block in model.layers:
        fully_shard(block)
    fully_shard(model)
else:
    model = nn.parallel.DistributedDataParallel(model, device_ids=[rank])
if kind == "zero":
    from torch.distributed.optim import ZeroRedundancyOptimizer
    optimizer = ZeroRedundancyOptimizer(model.parameters(), Optimizer, lr=1e-4)
else:
    optimizer = Optimizer(model.parameters(), lr=1e-4)
for i in range(5):
    with counted(i):
        loss = model(torch.randn(4, 64, 256).cuda()).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    seen = torch.ones(1).cuda() * rank
    dist.all_reduce(seen)
    assert seen.item() == 1, seen
print("rank", rank, "of", dist.get_world_size())
dist.destroy_process_group()
