"""Trains until somebody kills it, at a pace at which rfinject's writer comes along on a busy machine."""
import torch

model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
inputs = torch.zeros(8, 64).cuda()
host = torch.zeros(512, 512)
while True:
    host @ host
    optimizer.zero_grad()
    model(inputs).sum().backward()
    optimizer.step()
    torch.cuda.synchronize()
