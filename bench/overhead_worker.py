"""One training process of bench/overhead: trains blocks of steps on request and answers with their times.

    overhead_worker.py MODEL THREADS [hooks]

With "hooks", torch has two global module hooks that do nothing. Reads lines "N" from stdin: trains N steps, then prints
one line with the block's wall time and CPU time (of all threads) in seconds. It knows nothing about rfinject; the same
file runs with and without.
"""
import sys
import time

import torch
import torch.nn as nn


def make_model(name):
    """The model and one batch of input and target."""
    if name == "tiny":
        layers = [nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(200)]
        return nn.Sequential(*layers, nn.Linear(4, 1)), torch.randn(4, 4), torch.randn(4, 1), nn.MSELoss()
    import torchvision
    return (torchvision.models.resnet18(), torch.randn(4, 3, 224, 224), torch.randint(1000, (4,)),
            nn.CrossEntropyLoss())


def main():
    torch.set_num_threads(int(sys.argv[2]))
    torch.manual_seed(0)
    model, images, target, criterion = make_model(sys.argv[1])
    if "hooks" in sys.argv[3:]:
        nn.modules.module.register_module_forward_pre_hook(lambda module, args: None)
        nn.modules.module.register_module_forward_hook(lambda module, args, output: None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    for line in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(int(line)):
            optimizer.zero_grad()
            criterion(model(images), target).backward()
            optimizer.step()
        print(time.perf_counter() - wall, time.process_time() - cpu, flush=True)


if __name__ == "__main__":
    main()
