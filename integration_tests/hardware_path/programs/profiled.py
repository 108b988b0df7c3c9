"""Trains, and records a part of its steps with torch.profiler, twice; prints how many kernels each recording holds, and
whether each lies within the time of its recording."""
import json
import os
import sys
import tempfile

import torch

STEPS, RECORDED = int(sys.argv[1]), int(sys.argv[2])
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 8)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batch = torch.ones(16, 64, device="cuda")


def step():
    optimizer.zero_grad()
    model(batch).sum().backward()
    optimizer.step()


def train(steps):
    for _ in range(steps):
        step()


train(STEPS)
for recording in range(2):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]) as profiler:
        train(RECORDED)
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profiler.export_chrome_trace(path)
        with open(path) as file:
            events = [event for event in json.load(file)["traceEvents"] if "dur" in event]
    kernels = [event for event in events if event.get("cat") == "kernel"]
    operators = [event for event in events if event.get("cat") == "cpu_op"]
    begin = min(event["ts"] for event in operators)
    end = max(event["ts"] + event["dur"] for event in operators)
    # Kernels end after what launches them; a clock that is not the operators' puts them years away.
    near = sum(begin - 1e6 < event["ts"] < end + 1e6 for event in kernels)
    print(f"recorded {len(kernels)} kernels, {near} in time", flush=True)
    train(STEPS)
print("trained")
