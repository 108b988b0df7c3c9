"""A small language model, as one writes it: one loss from the model's own forward, no scheduler, no loader."""
import os

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

EDITED = os.environ.get("EDITED", "").split()
device = "cuda" if torch.cuda.is_available() else "cpu"
if "tf32" in EDITED:
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True


class Model(nn.Module):
    def __init__(self, words=512, width=256):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(),
                                                  nn.Linear(4 * width, width)) for _ in range(2))
        self.head = nn.Linear(width, words)

    def forward(self, tokens, targets):
        x = self.embed(tokens)
        for number, block in enumerate(self.blocks):
            if "checkpoint=blocks.{}".format(number) in EDITED:
                x = x + checkpoint(block, x, use_reentrant=False)
            else:
                x = x + block(x)
        logits = self.head(x)
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


torch.manual_seed(1)
model = Model().to(device)
foreach = True if "optimizer-foreach" in EDITED else None
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3,
                              foreach=foreach) if not "optimizer-fused" in EDITED else torch.optim.AdamW(
                                  model.parameters(), lr=1e-3, fused=True)
scaler = torch.cuda.amp.GradScaler() if "autocast-float16" in EDITED else None
for step in range(16):
    tokens = torch.randint(0, 512, (8, 16)).to(device)
    if "autocast" in EDITED:
        with torch.autocast(device, torch.bfloat16):
            loss = model(tokens, tokens)
    elif scaler:
        with torch.autocast(device, torch.float16):
            loss = model(tokens, tokens)
    else:
        loss = model(tokens, tokens)
    if "set-to-none" in EDITED:
        model.zero_grad(set_to_none=True)
    else:
        model.zero_grad(set_to_none=False)
    if scaler:
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    else:
        loss.backward()
        optimizer.step()
