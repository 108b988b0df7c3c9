"""How long copies and fills take by the GPU's own clock: a line each, with the milliseconds between two events.

The GPU has minutes of work before the first event, so that the host, which copies the bytes while it submits them, is
never what is waited for.
"""
import ctypes

import torch

BYTES = 64 << 20
matrix = torch.empty(65536, 65536, device="cuda")
host = torch.ones(BYTES // 4, pin_memory=True)
device = torch.empty(BYTES // 4, device="cuda")
other = torch.empty_like(device)
driver = ctypes.CDLL("libcuda.so.1")


def fill():
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    assert driver.cuMemsetD8Async(ctypes.c_uint64(device.data_ptr()), 0, ctypes.c_size_t(BYTES), stream) == 0


def replayed(work):
    side = torch.cuda.Stream()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        work()
    return graph.replay


cases = {"to_device": lambda: device.copy_(host, non_blocking=True),
         "to_host": lambda: host.copy_(device, non_blocking=True),
         "within": lambda: other.copy_(device), "fill": fill,
         "captured_to_device": replayed(lambda: device.copy_(host, non_blocking=True)), "captured_fill": replayed(fill)}
for name, work in cases.items():
    torch.mm(matrix, matrix, out=matrix)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    work()
    end.record()
    end.synchronize()
    print(f"{name} {begin.elapsed_time(end):.9f}")
print("a copy that the program waits for")
layer = torch.nn.Linear(1024, 1024).cuda()
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
for _ in range(3):
    batch = host[:1 << 20].reshape(1024, 1024).cuda()
    layer(batch).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
