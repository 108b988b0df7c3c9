"""What the host wrote is there, also after copies on the device; what it did not write is zeros."""
import torch

numbers = torch.arange(1_000_000, dtype=torch.float32)
copy = numbers.cuda().clone()
assert torch.equal(copy.cpu(), numbers)
fresh = torch.empty(100_000_000, device="cuda")
assert fresh[:1000].cpu().abs().sum() == 0 and fresh[-1000:].cpu().abs().sum() == 0
copy.copy_(fresh[:1_000_000])
assert copy.cpu().abs().sum() == 0
del copy
again = torch.empty_like(numbers, device="cuda")  # what torch's allocator got back from `copy`
assert not again.cpu().any()
free, total = torch.cuda.mem_get_info()
assert free < total - fresh.numel() * 4
print("memory ok")
