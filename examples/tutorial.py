"""Trains a small network whose head computes in double precision: what the tutorial finds, changes and proves.

    python tutorial.py                    # as it was written
    python tutorial.py --head-in-float    # as the tutorial changes it
"""
import argparse

import torch
import torch.nn as nn


class Head(nn.Linear):
    """Somebody once wanted exact scores."""

    def __init__(self, features, classes, dtype):
        super().__init__(features, classes, dtype=dtype)
        self.dtype = dtype

    def forward(self, features):
        return super().forward(features.to(self.dtype))


class Net(nn.Module):
    def __init__(self, head):
        super().__init__()
        self.narrow = nn.Linear(512, 1024)
        self.wide = nn.Linear(1024, 1024)
        self.head = head

    def forward(self, images):
        return self.head(torch.relu(self.wide(torch.relu(self.narrow(images)))))


def main():
    parser = argparse.ArgumentParser(description="A network with a slow head", allow_abbrev=False)
    parser.add_argument("-b", "--batch-size", type=int, default=256, metavar="N")
    parser.add_argument("--steps", type=int, default=4, metavar="N")
    parser.add_argument("--head-in-float", action="store_true", help="the head computes as the rest does")
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    head = Head(1024, 1000, torch.float32 if args.head_in_float else torch.float64)
    model = Net(head).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    images = torch.randn(args.batch_size, 512, device=device)
    labels = torch.randint(1000, (args.batch_size,), device=device)
    for _ in range(args.steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()


if __name__ == "__main__":
    main()
