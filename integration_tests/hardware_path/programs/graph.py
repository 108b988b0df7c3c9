"""graph.py STEPS whole|forward: a step of ResNet-18 as a CUDA graph: all of it, the optimizer's step included, or the
model alone (torch.cuda.make_graphed_callables)."""
import sys

import torch
import torchvision

steps, how = int(sys.argv[1]), sys.argv[2]
torch.manual_seed(0)
model = torchvision.models.resnet18(num_classes=10).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
images, labels = torch.zeros(4, 3, 64, 64).cuda(), torch.zeros(4, dtype=torch.int64).cuda()
if how == "forward":
    model = torch.cuda.make_graphed_callables(model, (images,))


def step():
    optimizer.zero_grad(set_to_none=True)
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()


if how == "forward":
    for _ in range(steps):
        step()
else:
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    for _ in range(steps):
        graph.replay()
torch.cuda.synchronize()
print("trained")
