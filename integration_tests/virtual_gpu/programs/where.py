import torch

print("cuda", torch.cuda.is_available())
