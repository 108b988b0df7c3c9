"""DCGAN as in PyTorch's tutorial: two networks and two optimizers a step."""
import torch
from counted import counted
from torch import nn

generator = nn.Sequential(nn.ConvTranspose2d(100, 256, 4), nn.BatchNorm2d(256), nn.ReLU(True),
                          nn.ConvTranspose2d(256, 128, 4, 2, 1), nn.BatchNorm2d(128), nn.ReLU(True),
                          nn.ConvTranspose2d(128, 3, 4, 2, 1), nn.Tanh()).cuda()
judge = nn.Sequential(nn.Conv2d(3, 128, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(128, 256, 4, 2, 1), nn.BatchNorm2d(256),
                      nn.LeakyReLU(0.2), nn.Conv2d(256, 1, 4), nn.Sigmoid()).cuda()
of_judge, of_generator = (torch.optim.Adam(net.parameters(), lr=2e-4, betas=(0.5, 0.999)) for net in (judge, generator))
lose = nn.BCELoss()
for i in range(6):
    real, noise = torch.randn(32, 3, 16, 16).cuda(), torch.randn(32, 100, 1, 1, device="cuda")
    with counted(i):
        judge.zero_grad()
        loss = lose(judge(real).view(-1), torch.ones(32, device="cuda"))
        loss.backward()
        fake = generator(noise)
        lose(judge(fake.detach()).view(-1), torch.zeros(32, device="cuda")).backward()
        of_judge.step()
        generator.zero_grad()
        lose(judge(fake).view(-1), torch.ones(32, device="cuda")).backward()
        of_generator.step()
    print("loss", loss.item())
