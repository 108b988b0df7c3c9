"""The networks of the suite, small enough for seconds, each a function from nothing to (model, batch, loss)."""
import pathlib
import sys

import torch
import torchvision
from torch import nn

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "virtual_gpu/programs"))
from block import Block  # noqa: E402


def images(size=64, count=4, classes=10):
    return torch.zeros(count, 3, size, size).cuda(), torch.zeros(count, dtype=torch.int64).cuda()


def classifier(make, size):
    def build():
        model = make(num_classes=10).cuda()
        x, y = images(size)
        return model, lambda: nn.functional.cross_entropy(model(x), y)
    return build


class Gpt(nn.Module):
    def __init__(self, words=100, width=64, blocks=2, checkpointed=False):
        super().__init__()
        self.embed, self.place = nn.Embedding(words, width), nn.Embedding(32, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.checkpointed = checkpointed

    def forward(self, tokens):
        x = self.embed(tokens) + self.place(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            if self.checkpointed:
                x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        return self.head(self.norm(x))


def gpt(**options):
    def build():
        model = Gpt(**options).cuda()
        tokens = torch.zeros(4, 32, dtype=torch.int64).cuda()

        def loss():
            with torch.autocast("cuda", torch.float16):
                return nn.functional.cross_entropy(model(tokens).flatten(0, 1).float(), tokens.flatten())
        return model, loss
    return build


class UNet(nn.Module):
    def __init__(self, widths=(8, 16, 32)):
        super().__init__()
        def pair(a, b):
            return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(inplace=True),
                                 nn.Conv2d(b, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(inplace=True))
        self.down = nn.ModuleList(pair(a, b) for a, b in zip((3,) + widths, widths))
        self.pool = nn.MaxPool2d(2)
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, stride=2) for a, b in zip(widths, widths[1:]))
        self.merge = nn.ModuleList(pair(2 * a, a) for a in widths[:-1])
        self.head = nn.Conv2d(widths[0], 2, 1)

    def forward(self, x):
        kept = []
        for i, down in enumerate(self.down):
            x = down(x if i == 0 else self.pool(x))
            kept.append(x)
        for up, merge, skip in reversed(list(zip(self.up, self.merge, kept))):
            x = merge(torch.cat([skip, up(x)], 1))
        return self.head(x)


def unet():
    model = UNet().cuda()
    x, y = torch.zeros(2, 3, 32, 32).cuda(), torch.zeros(2, 32, 32, dtype=torch.int64).cuda()
    return model, lambda: nn.functional.cross_entropy(model(x), y)


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(100, 64)
        self.lstm = nn.LSTM(64, 128, 2, batch_first=True, dropout=0.1)
        self.head = nn.Linear(128, 100)

    def forward(self, tokens):
        return self.head(self.lstm(self.embed(tokens))[0])


def lstm():
    model = Lstm().cuda()
    tokens = torch.zeros(8, 16, dtype=torch.int64).cuda()
    return model, lambda: nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())


MODELS = {
    "resnet18": classifier(torchvision.models.resnet18, 64),
    "resnet50": classifier(torchvision.models.resnet50, 64),
    "vgg13": classifier(torchvision.models.vgg13, 64),
    "vit": classifier(torchvision.models.vit_b_16, 224),
    "gpt_amp": gpt(),
    "gpt_checkpointed": gpt(checkpointed=True),
    "unet": unet,
    "lstm": lstm,
}
