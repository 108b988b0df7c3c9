"""A step that is captured launches on every replay what it launched when it was run."""
import ctypes

import torch
import torchvision

launches = ctypes.CDLL("libcuda.so.1").rfinject_virtual_gpu_launches
launches.restype = ctypes.c_uint64
model = torchvision.models.resnet18().cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
images, labels = torch.zeros(8, 3, 224, 224).cuda(), torch.zeros(8, dtype=torch.int64).cuda()


def step():
    optimizer.zero_grad(set_to_none=True)
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()


stream = torch.cuda.Stream()
stream.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(stream):
    for _ in range(3):
        before = launches()
        step()
        in_a_step = launches() - before
torch.cuda.current_stream().wait_stream(stream)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    step()
before = launches()
for _ in range(5):
    graph.replay()
torch.cuda.synchronize()
# PyTorch 2.6 writes the seed and the offset of its random numbers before each replay, with a kernel each.
assert launches() - before in (5 * in_a_step, 5 * (in_a_step + 2)), (launches() - before, in_a_step)
try:
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        images.sum().item()
    raise SystemExit("a capture must not survive .item()")
except RuntimeError:
    print("graph ok")
