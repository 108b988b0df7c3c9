"""What is not computed under --values all: cuDNN's recurrent layers with a dropout, and what a CUDA graph launches."""
import torch

torch.manual_seed(0)
lstm = torch.nn.LSTM(8, 16, 2, dropout=0.5).cuda()
x = torch.randn(5, 3, 8).cuda()
before = torch.get_rng_state()
for _ in range(2):
    out = lstm(x)[0]
print("zeros", out.abs().sum().item() == 0)

x = torch.ones(4, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x * 3
graph.replay()
print("generator", torch.equal(before, torch.get_rng_state()))
print("captured", y.tolist() == [0, 0, 0, 0])
print("goes on", (x * 3).tolist() == [3, 3, 3, 3])
