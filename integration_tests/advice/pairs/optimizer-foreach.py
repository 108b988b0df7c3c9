import torch

from programs import MENDED, Gpt, tokens, train

train(Gpt(width=256, blocks=8), tokens(2, 64), lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, foreach=MENDED))
