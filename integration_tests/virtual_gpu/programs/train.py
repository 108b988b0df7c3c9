"""Three steps of a torchvision model on the GPU: train.py MODEL BATCH [amp] [channels_last]."""
import ctypes
import re
import resource
import sys

import torch
import torchvision

launches = ctypes.CDLL("libcuda.so.1").rfinject_virtual_gpu_launches
launches.restype = ctypes.c_uint64

amp = "amp" in sys.argv
model = getattr(torchvision.models, sys.argv[1])().cuda()
if "channels_last" in sys.argv:
    model = model.to(memory_format=torch.channels_last)
scaler = torch.amp.GradScaler("cuda", enabled=amp)
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
criterion = torch.nn.CrossEntropyLoss().cuda()
images = torch.zeros(int(sys.argv[2]), 3, 224, 224).cuda()
labels = torch.zeros(int(sys.argv[2]), dtype=torch.int64).cuda()


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


for _ in range(3):
    before = cpu_seconds()
    counts = [launches()]
    with torch.autocast("cuda", enabled=amp):
        loss = criterion(model(images), labels)
    counts.append(launches())
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    counts.append(launches())
    scaler.step(optimizer)
    scaler.update()
    counts.append(launches())
    print("launches", *(after - before for before, after in zip(counts, counts[1:])))
    print("cpu_seconds", cpu_seconds() - before)
torch.cuda.synchronize()
print(torch.cuda.get_device_name(), torch.cuda.max_memory_allocated())
with open("/proc/self/status") as status:
    print("most_memory_kib", re.search(r"VmHWM:\s*(\d+)", status.read()).group(1))
with open("/proc/self/maps") as maps:
    for path in sorted({line.split()[-1] for line in maps if "/nvidia/" in line}):
        print("library", path)
