import torch

from programs import MENDED, ConvNet, images, train

dtype = torch.float32 if MENDED else torch.float64
train(ConvNet().to(dtype), images(4, dtype=dtype))
