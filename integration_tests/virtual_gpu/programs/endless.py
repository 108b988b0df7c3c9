"""Trains until somebody kills it."""
import torch

model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
inputs = torch.zeros(8, 64).cuda()
while True:
    optimizer.zero_grad()
    model(inputs).sum().backward()
    optimizer.step()
    torch.cuda.synchronize()
