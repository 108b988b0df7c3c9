"""A model under DistributedDataParallel, alone in its group. EDITED names what a hand has changed in it."""
import os

import torch
import torch.distributed as distributed
from torch import nn

EDITED = os.environ.get("EDITED", "").split()
cuda = torch.cuda.is_available()
device = "cuda" if cuda else "cpu"
distributed.init_process_group("nccl" if cuda else "gloo", store=distributed.HashStore(), rank=0, world_size=1)
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10)).to(device)
options = {"static_graph": "ddp-static-graph" in EDITED, "gradient_as_bucket_view": "ddp-bucket-view" in EDITED} if EDITED else {}
model = nn.parallel.DistributedDataParallel(model, **options)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(16):
    images, target = torch.randn(32, 64).to(device), torch.randint(0, 10, (32,)).to(device)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(images), target).backward()
    optimizer.step()
distributed.destroy_process_group()
