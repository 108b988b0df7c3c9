"""One rank ends while the other waits for it: the other hears of it, and does not wait for ever."""
import os

import torch
import torch.distributed as dist

dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
flag = torch.ones(1).cuda()
dist.all_reduce(flag)
assert flag.item() == 2
if dist.get_rank() == 1:
    os._exit(0)
try:
    dist.all_reduce(flag)
except RuntimeError as error:
    print("gone ok", error, flush=True)
os._exit(0)
