"""A language model as nanoGPT trains one: causal attention, tied weights, decay in two groups, accumulated gradients.

    nanogpt.py [compile] [fused]
"""
import sys

import torch
from counted import counted
from torch import nn

WIDTH, HEADS, DEPTH, WORDS, LENGTH = 256, 4, 4, 8192, 256


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.c_attn, self.c_proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (part.view(b, t, HEADS, c // HEADS).transpose(1, 2) for part in self.c_attn(self.ln_1(x)).split(c, 2))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.h = nn.ModuleList(Block() for _ in range(DEPTH))
        self.ln_f, self.lm_head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)
        self.wte.weight = self.lm_head.weight

    def forward(self, ids, targets):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device))
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        return nn.functional.cross_entropy(logits.view(-1, WORDS), targets.view(-1), ignore_index=-1)


def make(fused):
    model = Gpt().cuda()
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    return model, torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1},
                                     {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0}],
                                    lr=6e-4, betas=(0.9, 0.95), fused=fused)


def batch():
    return torch.randint(WORDS, (2, 4, LENGTH + 1)).pin_memory().cuda(non_blocking=True)


def step(model, call, optimizer, scaler, ids):
    """Trains on the micro-batches of `ids` and returns the last one's loss. `call` is the model, or what compiles it."""
    for micro in ids:
        with torch.autocast("cuda", torch.bfloat16):
            loss = call(micro[:, :-1].contiguous(), micro[:, 1:].contiguous()) / 2
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    return loss


def main():
    torch.manual_seed(1337)
    model, optimizer = make("fused" in sys.argv)
    compiled = "compile" in sys.argv
    call = torch.compile(model) if compiled else model
    scaler = torch.amp.GradScaler("cuda", enabled=False)
    for i in range(5):
        ids = batch()
        with counted(1 if compiled else i):
            loss = step(model, call, optimizer, scaler, ids)
        print("loss", loss.item())


if __name__ == "__main__":
    main()
