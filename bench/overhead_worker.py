"""One training process of bench/overhead: trains blocks of steps on request and answers with their times.

    overhead_worker.py MODEL THREADS [alone] [cuda]

The process has a second thread, idle, as whatever trains on a GPU has (CUDA's, autograd's): in one that never had one,
glibc's malloc and mutexes do without atomic operations. With "alone" it has none; with "cuda" it trains on a GPU, as
"nanogpt" always does. Reads lines "N" from stdin: trains N steps, then prints one line with the block's wall time and CPU
time (of all threads) in seconds. It knows nothing about rfinject; the same file runs with and without.
"""
import pathlib
import sys
import threading
import time

import torch
import torch.nn as nn

sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "integration_tests" / "third_party" / "programs"))


def make_model(name):
    """The model and one batch of input and target."""
    if name == "tiny":
        layers = [nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(200)]
        return nn.Sequential(*layers, nn.Linear(4, 1)), torch.randn(4, 4), torch.randn(4, 1), nn.MSELoss()
    import torchvision
    return (torchvision.models.resnet18(), torch.randn(4, 3, 224, 224), torch.randint(1000, (4,)),
            nn.CrossEntropyLoss())


def make_step(name, cuda):
    """A function that trains one step."""
    if name == "nanogpt":
        import nanogpt
        model, optimizer = nanogpt.make(fused=True)
        scaler = torch.amp.GradScaler("cuda", enabled=False)
        return lambda: nanogpt.step(model, model, optimizer, scaler, nanogpt.batch()).item()
    model, images, target, criterion = make_model(name)
    if cuda:
        model, images, target = model.cuda(), images.cuda(), target.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)

    def step():
        optimizer.zero_grad()
        criterion(model(images), target).backward()
        optimizer.step()
    return step


def main():
    if "alone" not in sys.argv[3:]:
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    torch.set_num_threads(int(sys.argv[2]))
    torch.manual_seed(0)
    step = make_step(sys.argv[1], "cuda" in sys.argv[3:])
    for line in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(int(line)):
            step()
        print(time.perf_counter() - wall, time.process_time() - cpu, flush=True)


if __name__ == "__main__":
    main()
