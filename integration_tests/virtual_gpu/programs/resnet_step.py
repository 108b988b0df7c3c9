"""A training step of ResNet-18 that can be captured into a CUDA graph, and its capture."""
import torch
import torchvision

model = torchvision.models.resnet18().cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
images, labels = torch.zeros(8, 3, 224, 224).cuda(), torch.zeros(8, dtype=torch.int64).cuda()


def step():
    optimizer.zero_grad(set_to_none=True)
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()


def capture(eager_steps, run=step):
    """The graph of one step, captured after so many steps on a stream of their own, as PyTorch asks for it."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(eager_steps):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph
