"""Small tensors have their values on the virtual GPU: each line is a name and whether it holds."""
import torch

D = "cuda"
x = torch.arange(12.0, device=D).reshape(3, 4)
print("arange", x.tolist() == torch.arange(12.0).reshape(3, 4).tolist())
print("inverse", 1 / torch.ones(5, device=D).sum().item() == 0.2)
print("mask", x[x > 4].tolist() == [5, 6, 7, 8, 9, 10, 11], (x > 4).nonzero().shape == (7, 2))
print("all", bool((x >= 0).all()), not bool((x > 0).all()), bool((x > 0).any()))
values, inverse, counts = torch.unique(torch.tensor([3, 1, 2, 3, 1], device=D), return_inverse=True, return_counts=True)
print("unique", values.tolist() == [1, 2, 3], inverse.tolist() == [2, 0, 1, 2, 0], counts.tolist() == [2, 1, 2])
print("rows", torch.unique(torch.tensor([[5, 3], [2, 3], [5, 3]], device=D), dim=0).tolist() == [[2, 3], [5, 3]])
print("sort", x.flatten().sort(descending=True).values.tolist() == list(range(11, -1, -1)))
print("scan", x.cumsum(0).tolist() == torch.arange(12.0).reshape(3, 4).cumsum(0).tolist())
print("product", (x @ x.t()).tolist() == [[14, 38, 62], [38, 126, 214], [62, 214, 366]])
y = x.clone()
y[0] = 7
y[:, 1] += 2
print("views", y.tolist() == [[7, 9, 7, 7], [4, 7, 6, 7], [8, 11, 10, 11]])
print("half", x.half().sum().item() == 66, x.bfloat16()[2, 3].item() == 11)

lists = [torch.ones(3, device=D), torch.full((2,), 2.0, device=D)]
torch._foreach_mul_(lists, 2.0)
torch._foreach_add_(lists, lists)
print("lists", [one.tolist() for one in lists] == [[4, 4, 4], [8, 8]])

# Optimizers count the steps of each parameter.
steps = [torch.zeros((), device=D), torch.full((1,), 2.0, device=D), -x[0, 1]]
torch._foreach_add_(steps, 1)
torch._foreach_add_(steps, torch.tensor(0.5, device=D), alpha=2)
whole = [torch.tensor(7, device=D), torch.tensor(8, device=D)]
torch._foreach_add_(whole, 2)
print("steps", [one.item() for one in steps] == [2, 4, 1], [one.item() for one in whole] == [9, 10])

before = torch.get_rng_state()
torch.cuda.manual_seed(3)
a, b = torch.randn(100, device=D), torch.randn(100, device=D)
torch.cuda.manual_seed(3)
print("random", torch.equal(torch.randn(100, device=D), a), not torch.equal(a, b), 0.7 < a.std().item() < 1.3,
      sorted(torch.randperm(6, device=D).tolist()) == list(range(6)), torch.equal(before, torch.get_rng_state()))
print("guarded", bool(torch.distributions.Normal(x, x + 1).sample().isfinite().all()))

layer = torch.nn.Linear(4, 4).cuda()
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
grad_scaler = torch.amp.GradScaler("cuda")
grad_scaler.scale(layer(x).sum()).backward()
grad_scaler.step(optimizer)
grad_scaler.update()
print("scale", grad_scaler.get_scale() == 65536)

# Lengths come from masks, which are larger than what is computed of floating point.
mask = torch.ones(8, 16000, dtype=torch.long, device=D)
mask[3, 9000:] = 0
print("lengths", mask.sum(-1).tolist() == [16000] * 3 + [9000] + [16000] * 4)

# The CPU's kernel of this operator wants a buffer that CUDA's leaves empty: it throws.
score = torch.randn(8, device=D, requires_grad=True)
torch.nn.functional.logsigmoid(score).sum().backward()
print("goes on", score.grad.shape == (8,))

# What comes from a large tensor is not computed, and counts as finite.
large = torch.randn(1000, 1000, device=D)
loss = (large @ large).mean()
with open(__file__, encoding="utf-8") as own:
    line = next(number for number, text in enumerate(own, 1) if "loss.item()" in text and "line" not in text)
print("finite", bool(torch.isfinite(large).all()), not bool(torch.isnan(large).any()), bool(torch.isfinite(1 / loss)))
print("zero", loss.item() == 0)
print("LINE", line)
