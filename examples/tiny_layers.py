"""Trains a deep stack of 4x4 linear layers: next to no arithmetic a layer, so nearly all time is overhead.

The worst case for anything that costs something per layer or per operator.

    python tiny_layers.py --layers 200 --steps 20
"""
import argparse

import torch
import torch.nn as nn


def make_model(layers, width):
    return nn.Sequential(*[nn.Sequential(nn.Linear(width, width), nn.Tanh()) for _ in range(layers)],
                         nn.Linear(width, 1))


def main():
    parser = argparse.ArgumentParser(description="Many tiny layers", allow_abbrev=False)
    parser.add_argument("--layers", type=int, default=200, metavar="N")
    parser.add_argument("--width", type=int, default=4, metavar="N")
    parser.add_argument("-b", "--batch-size", type=int, default=4, metavar="N")
    parser.add_argument("--steps", type=int, default=20, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cpu", action="store_true", help="use no GPU")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() and not args.cpu else "cpu")
    model = make_model(args.layers, args.width).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    images = torch.randn(args.batch_size, args.width, device=device)
    target = torch.randn(args.batch_size, 1, device=device)
    for step in range(args.steps):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(images), target)
        loss.backward()
        optimizer.step()
        print(f"step {step}: loss {loss.item():.4e}", flush=True)


if __name__ == "__main__":
    main()
