"""Whole training steps in a CUDA graph: three as they come, then the graph of one, launched forty times."""
import torch

import resnet_step

EAGER, REPLAYS = 3, 40
graph = resnet_step.capture(EAGER)
begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
begin.record()
for _ in range(REPLAYS):
    graph.replay()
end.record()
torch.cuda.synchronize()
print("replay_ms", begin.elapsed_time(end) / REPLAYS)
