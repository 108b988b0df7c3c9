"""Ranks of one machine: collectives carry what the host wrote, and compute with it; DDP and FSDP train."""
import os

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel

dist.init_process_group("nccl")
rank, ranks = dist.get_rank(), dist.get_world_size()
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))


def on_device(values, dtype=torch.int64):
    return torch.tensor(values, dtype=dtype).cuda()


def collectives():
    total = sum(range(1, ranks + 1))
    for dtype in (torch.int64, torch.int32, torch.uint8, torch.float16, torch.bfloat16, torch.float32, torch.float64):
        x = on_device([1 + rank, 2], dtype)
        dist.all_reduce(x)
        assert x.tolist() == [total, 2 * ranks], x
        x = on_device([1 + rank, 2], dtype)
        dist.all_reduce(x, op=dist.ReduceOp.MAX)
        assert x.tolist() == [ranks, 2], x
    x = on_device([0.5 + rank], torch.float32)
    dist.all_reduce(x, op=dist.ReduceOp.AVG)
    assert x.item() == sum(0.5 + r for r in range(ranks)) / ranks, x
    x = on_device([rank])
    dist.broadcast(x, 1)
    assert x.item() == 1, x
    x = on_device([1])
    dist.reduce(x, 1)
    assert x.item() == (ranks if rank == 1 else 1), x
    lists = [torch.empty(2, dtype=torch.int64, device="cuda") for _ in range(ranks)]
    dist.all_gather(lists, on_device([rank, rank * rank]))
    assert [x.tolist() for x in lists] == [[r, r * r] for r in range(ranks)], lists
    whole = torch.empty(2 * ranks, dtype=torch.int64, device="cuda")
    dist.all_gather_into_tensor(whole, on_device([rank, -rank]))
    assert whole.tolist() == [value for r in range(ranks) for value in (r, -r)], whole
    part = torch.empty(1, device="cuda")
    dist.reduce_scatter_tensor(part, on_device([10 * r + rank for r in range(ranks)], torch.float32))
    assert part.item() == 10 * rank * ranks + sum(range(ranks)), part
    mixed = torch.empty(ranks, dtype=torch.int64, device="cuda")
    dist.all_to_all_single(mixed, on_device([100 * rank + r for r in range(ranks)]))
    assert mixed.tolist() == [100 * r + rank for r in range(ranks)], mixed
    x = torch.empty(1, dtype=torch.int64, device="cuda")
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, on_device([rank]), (rank + 1) % ranks),
                                        dist.P2POp(dist.irecv, x, (rank - 1) % ranks)]):
        work.wait()
    assert x.item() == (rank - 1) % ranks, x
    even = dist.new_group(list(range(0, ranks, 2)))
    if rank % 2 == 0:
        x = on_device([1])
        dist.all_reduce(x, group=even)
        assert x.item() == (ranks + 1) // 2, x
    nothing = torch.zeros(50_000_000, device="cuda")
    dist.all_reduce(nothing)
    assert not nothing[-1000:].cpu().any()
    dist.barrier()


def train(wrap):
    model = wrap(torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)).cuda())
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    inputs, labels = torch.zeros(8, 64).cuda(), torch.zeros(8, dtype=torch.int64).cuda()
    for _ in range(3):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()


collectives()
train(torch.nn.parallel.DistributedDataParallel)
train(FullyShardedDataParallel)
dist.barrier()
dist.destroy_process_group()
print("ranks ok", flush=True)
