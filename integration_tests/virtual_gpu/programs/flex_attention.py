"""Compiled flex_attention of all scores, and of the blocks that a causal mask leaves: forward and backward."""
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

TOKENS = 512  # four blocks of 128


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones((), device="cuda", dtype=torch.bfloat16))

    def forward(self, q, k, v, mask=None):
        return flex_attention(q * self.scale, k, v, block_mask=mask)


class Causal(Attention):
    pass


mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, TOKENS, TOKENS, device="cuda")
operand = torch.zeros(2, 2, TOKENS, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
every, causal = torch.compile(Attention()), torch.compile(Causal())
for _ in range(4):
    (every(operand, operand, operand).sum() + causal(operand, operand, operand, mask).sum()).backward()
