"""A compiled module counts its calls in a tensor on the GPU, which the program reads."""
import torch


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4))
        self.register_buffer("calls", torch.zeros(4))

    def forward(self, x):
        self.calls.add_(1)
        return x * self.weight


model = Counter().cuda()
model.compile()
x = torch.ones(4, device="cuda")
print("before", float(model.calls.sum()))
for _ in range(3):
    model(x).sum().backward()
print("after", float(model.calls.sum()))
