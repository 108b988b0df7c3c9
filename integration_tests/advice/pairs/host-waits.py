"""The loss is read in every step, so that the GPU has nothing to do while the host prepares the next one; mended, it is added
up on the GPU. Preparing takes time but no processor, so that the pair says the same on a busy machine."""
import time

import programs
import torch

WIDTH, BATCH, LAYERS, STEPS = 4096, 4096, 8, 8
PREPARE_S = 0.1


def main():
    model = torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS))).to(programs.DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batch = torch.zeros(BATCH, WIDTH, device=programs.DEVICE)
    total = 0
    for _ in range(STEPS):
        time.sleep(PREPARE_S)
        optimizer.zero_grad()
        loss = model(batch).sum()
        loss.backward()
        optimizer.step()
        total += loss.detach() if programs.MENDED else loss.item()
    print(float(total))


if __name__ == "__main__":
    main()
