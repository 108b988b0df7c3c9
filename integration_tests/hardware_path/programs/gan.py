"""gan.py STEPS: two networks, two optimizers; the discriminator is called three times a step."""
import sys

import torch
from torch import nn


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.ConvTranspose2d(16, 32, 4, 2, 1), nn.BatchNorm2d(32), nn.ReLU(True),
                                  nn.ConvTranspose2d(32, 3, 4, 2, 1), nn.Tanh())

    def forward(self, noise):
        return self.body(noise)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 32, 4, 2, 1), nn.LeakyReLU(0.2, True), nn.Conv2d(32, 1, 4, 2, 1))
        self.flat = nn.Flatten()

    def forward(self, images):
        return self.flat(self.body(images)).mean(1)


torch.manual_seed(0)
generator, discriminator = Generator().cuda(), Discriminator().cuda()
of_generator = torch.optim.Adam(generator.parameters(), 1e-3)
of_discriminator = torch.optim.Adam(discriminator.parameters(), 1e-3)
loss = nn.BCEWithLogitsLoss()
real, noise = torch.zeros(4, 3, 32, 32).cuda(), torch.zeros(4, 16, 8, 8).cuda()
ones, zeros = torch.ones(4).cuda(), torch.zeros(4).cuda()
for _ in range(int(sys.argv[1])):
    fake = generator(noise)
    of_discriminator.zero_grad()
    loss(discriminator(real), ones).backward()
    loss(discriminator(fake.detach()), zeros).backward()
    of_discriminator.step()
    of_generator.zero_grad()
    loss(discriminator(fake), ones).backward()
    of_generator.step()
torch.cuda.synchronize()
print("trained")
