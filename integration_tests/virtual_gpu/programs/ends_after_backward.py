"""Ends right after a backward."""
import torch

x = torch.ones(4, 16, requires_grad=True, device="cuda")
(x * 2).sum().backward()
