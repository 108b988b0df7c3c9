"""Whole training steps in a CUDA graph: three as they come, then the graph of one, launched forty times."""
import torch
import torchvision

EAGER, REPLAYS = 3, 40
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
    for _ in range(EAGER):
        step()
torch.cuda.current_stream().wait_stream(stream)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    step()
begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
begin.record()
for _ in range(REPLAYS):
    graph.replay()
end.record()
torch.cuda.synchronize()
print("replay_ms", begin.elapsed_time(end) / REPLAYS)
