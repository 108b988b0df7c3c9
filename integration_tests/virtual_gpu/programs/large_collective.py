"""Two ranks add up more than is carried where values are not computed."""
import torch
import torch.distributed

torch.distributed.init_process_group("nccl")
rank = torch.distributed.get_rank()
torch.cuda.set_device(rank)
numbers = torch.arange(2 << 20, dtype=torch.float32)
mine = numbers.cuda() * (rank + 1)
torch.distributed.all_reduce(mine)
# One write: the ranks share a pipe, and torchrun does not buffer.
print(f"reduced {torch.equal(mine.cpu(), numbers * 3)}\n", end="", flush=True)
torch.distributed.destroy_process_group()
