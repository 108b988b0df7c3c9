import torch

from programs import MENDED, Gpt, tokens, train

torch.set_float32_matmul_precision("high" if MENDED else "highest")
train(Gpt(), tokens())
