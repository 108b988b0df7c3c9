"""The batches of a step are made by the process that trains; mended, by eight others, while it does something else. Making one,
and the something else, take time but no processor (a file that is read over a network), so that the pair says the same on a
busy machine."""
import time

import programs
import torch
from torch.utils.data import DataLoader, Dataset

WIDTH, BATCH, LAYERS, STEPS = 1024, 16, 30, 12
SAMPLE_S = 0.01  # a batch takes 160 ms
ELSE_S = 0.06


class Slow(Dataset):
    def __len__(self):
        return BATCH * STEPS

    def __getitem__(self, index):
        time.sleep(SAMPLE_S)
        return torch.zeros(WIDTH)


def main():
    model = torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS))).to(programs.DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in DataLoader(Slow(), BATCH, num_workers=8 if programs.MENDED else 0):
        optimizer.zero_grad()
        model(batch.to(programs.DEVICE, non_blocking=True)).sum().backward()
        optimizer.step()
        time.sleep(ELSE_S)


if __name__ == "__main__":
    main()
