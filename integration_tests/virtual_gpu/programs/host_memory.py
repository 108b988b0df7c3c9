"""Asks for as much memory as the host has: host_memory.py prints what came of it."""
import torch

with open("/proc/meminfo", encoding="utf-8") as facts:
    kib = int(next(line for line in facts if line.startswith("MemTotal")).split()[1])
if kib * 1024 > 0.9 * torch.cuda.mem_get_info()[0]:
    print("too much of it")
else:
    try:
        large = torch.empty(kib, 1024, dtype=torch.uint8, device="cuda")
        print("got", large.shape[0] == kib)
    except torch.OutOfMemoryError:
        print("refused")
print("goes on", torch.ones(1000, device="cuda").sum().item())
