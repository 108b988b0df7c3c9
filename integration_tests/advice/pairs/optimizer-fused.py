import torch

from programs import MENDED, Gpt, tokens, train

train(Gpt(fused=True), tokens(), lambda p: torch.optim.AdamW(p, fused=True) if MENDED else torch.optim.AdamW(p, foreach=True))
