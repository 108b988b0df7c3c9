"""Children of fork train on the CPU, as they do where no GPU is: forks.py [ask] [before] [late].

ask: is_available() is called first; before: the parent has trained on the CPU; late: at the end the GPU is used after
all, first by the engine that was started without it.
"""
import os
import sys

import torch
from torch.utils.checkpoint import checkpoint

model = torch.nn.Linear(8, 8)


def step(device="cpu"):
    model.to(device)
    inputs = torch.ones(4, 8, device=device, requires_grad=True)
    checkpoint(model, inputs, use_reentrant=True).sum().backward()


def work(_):
    step()
    return os.getpid()


def storm(children):
    """As many children at once: how each of them ended."""
    pids = []
    for _ in range(children):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                step()
                code = 0
            finally:
                os._exit(code)
        pids.append(pid)
    return [os.waitpid(pid, 0)[1] for pid in pids]


class Trains(torch.utils.data.Dataset):
    """Each item takes a backward pass, in the worker."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        step()
        return index


if "ask" in sys.argv:
    torch.cuda.is_available(), torch.cuda.device_count()
if "before" in sys.argv:
    step()
for _ in range(2):
    print("children", set(storm(8)))
print("items", sorted(int(item) for batch in torch.utils.data.DataLoader(Trains(), 2, num_workers=2) for item in batch))
with torch.multiprocessing.get_context("fork").Pool(2) as pool:
    print("pool", len(pool.map(work, range(4))))
print("initialized", torch.cuda.is_initialized())
if "late" in sys.argv:
    step("cuda")
    step("cpu")
    print("devices of the gradients", {str(parameter.grad.device) for parameter in model.parameters()})
