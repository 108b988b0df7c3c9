"""Trains a small DCGAN on noise: two models and two optimizers, whose steps alternate.

    python gan.py --steps 10
"""
import argparse

import torch
import torch.nn as nn


class Generator(nn.Module):
    """Noise of `latent` numbers to a 3x32x32 image."""

    def __init__(self, latent, width):
        super().__init__()
        self.project = nn.ConvTranspose2d(latent, 4 * width, 4, bias=False)
        self.norm1 = nn.BatchNorm2d(4 * width)
        self.up1 = nn.ConvTranspose2d(4 * width, 2 * width, 4, stride=2, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(2 * width)
        self.up2 = nn.ConvTranspose2d(2 * width, width, 4, stride=2, padding=1, bias=False)
        self.norm3 = nn.BatchNorm2d(width)
        self.to_image = nn.ConvTranspose2d(width, 3, 4, stride=2, padding=1)

    def forward(self, noise):
        x = torch.relu(self.norm1(self.project(noise[:, :, None, None])))
        x = torch.relu(self.norm2(self.up1(x)))
        x = torch.relu(self.norm3(self.up2(x)))
        return torch.tanh(self.to_image(x))


class Discriminator(nn.Module):
    """A 3x32x32 image to one logit: real or not."""

    def __init__(self, width):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, width, 4, stride=2, padding=1), nn.LeakyReLU(0.2),
            nn.Conv2d(width, 2 * width, 4, stride=2, padding=1), nn.LeakyReLU(0.2),
            nn.Conv2d(2 * width, 4 * width, 4, stride=2, padding=1), nn.LeakyReLU(0.2))
        self.head = nn.Conv2d(4 * width, 1, 4)

    def forward(self, image):
        return self.head(self.features(image)).flatten()


def main():
    parser = argparse.ArgumentParser(description="DCGAN on random images", allow_abbrev=False)
    parser.add_argument("-b", "--batch-size", type=int, default=16, metavar="N")
    parser.add_argument("--steps", type=int, default=10, metavar="N")
    parser.add_argument("--latent", type=int, default=64, metavar="N")
    parser.add_argument("--width", type=int, default=32, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cpu", action="store_true", help="use no GPU")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() and not args.cpu else "cpu")
    generator = Generator(args.latent, args.width).to(device)
    discriminator = Discriminator(args.width).to(device)
    generator_optimizer = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    discriminator_optimizer = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
    criterion = nn.BCEWithLogitsLoss()
    real_label = torch.ones(args.batch_size, device=device)
    fake_label = torch.zeros(args.batch_size, device=device)

    for step in range(args.steps):
        real = torch.randn(args.batch_size, 3, 32, 32, device=device).tanh()
        fake = generator(torch.randn(args.batch_size, args.latent, device=device))

        discriminator_optimizer.zero_grad()
        loss_d = criterion(discriminator(real), real_label) + criterion(discriminator(fake.detach()), fake_label)
        loss_d.backward()
        discriminator_optimizer.step()

        generator_optimizer.zero_grad()
        loss_g = criterion(discriminator(fake), real_label)
        loss_g.backward()
        generator_optimizer.step()
        print(f"step {step}: discriminator {loss_d.item():.4e} generator {loss_g.item():.4e}", flush=True)


if __name__ == "__main__":
    main()
