"""Layers whose operators have rules of their own, or none, each called once: forward, and backward where it has one."""
import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision


class Layer(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


@torch.library.custom_op("mine::double", mutates_args=())
def double(x: torch.Tensor) -> torch.Tensor:
    return x + x


def jagged():
    lengths = (128, 512, 1024)
    return torch.nested.nested_tensor([torch.zeros(n, 8, 64) for n in lengths], layout=torch.jagged, device="cuda",
                                      dtype=torch.bfloat16, requires_grad=True).transpose(1, 2)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.parameter = nn.Parameter(torch.zeros(1))
        self.padded = Layer(F.scaled_dot_product_attention)
        self.causal = Layer(lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True))
        self.jagged = Layer(F.scaled_dot_product_attention)
        self.fft = Layer(torch.fft.rfft2)
        self.direct = Layer(lambda a: torch.cdist(a, a, compute_mode="donot_use_mm_for_euclid_dist"))
        self.depthwise = nn.Conv2d(32, 32, 3, padding=1, groups=32, bias=False)
        self.bag = nn.EmbeddingBag(1000, 16, mode="sum")
        self.integers = Layer(torch._int_mm)
        self.custom = Layer(double)
        self.pooled = Layer(lambda x, boxes: torchvision.ops.roi_align(x, boxes, 7))
        self.kept = Layer(lambda boxes, scores: torchvision.ops.nms(boxes, scores, 0.5))

    def forward(self):
        zeros = lambda *shape, t=torch.float32: torch.zeros(*shape, device="cuda", dtype=t)
        half = zeros(2, 5, 9, 4, t=torch.bfloat16)
        self.padded(half, half, half)
        self.causal(zeros(1, 2, 64, 8, t=torch.bfloat16))
        loss = self.jagged(jagged(), jagged(), jagged()).values().sum()
        self.fft(zeros(1, 768, 16, 16))
        self.direct(zeros(1024, 256))
        loss = loss + self.depthwise(zeros(2, 32, 8, 8)).sum()
        loss = loss + self.bag(torch.zeros(8, 5, dtype=torch.long, device="cuda")).sum()
        self.integers(zeros(64, 64, t=torch.int8), zeros(64, 64, t=torch.int8))
        self.custom(zeros(10))
        self.pooled(zeros(1, 8, 32, 32), zeros(4, 5))
        self.kept(zeros(4, 4), zeros(4))
        return loss


Net().cuda()().backward()
