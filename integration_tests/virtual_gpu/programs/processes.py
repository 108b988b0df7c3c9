"""Trains in processes that come to be in all the ways there are, on a device: processes.py cpu|cuda.

Prints a line a process: the way, the process id, and "trained" or why not. Ends by os._exit(7).
"""
import importlib
import multiprocessing
import os
import sys
import traceback

torch = importlib.import_module("torch")

WIDTH = 8


def train(way, batches=None):
    """Three steps on the device that the command line names."""
    try:
        model = torch.nn.Linear(WIDTH, WIDTH).to(sys.argv[1])
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for (batch,) in batches or [(torch.ones(4, WIDTH),)] * 3:
            optimizer.zero_grad()
            model(batch.to(sys.argv[1], non_blocking=True)).sum().backward()
            optimizer.step()
        print(way, os.getpid(), "trained", flush=True)
    except RuntimeError as error:
        print(way, os.getpid(), str(error).splitlines()[0], flush=True)


def forked(work):
    """Waits for a child that does `work`, and for all whom it leaves behind."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        sys.exit(0)  # the interpreter ends as after any program
    os.close(write)
    os.read(read, 1)  # returns when nobody has the other end any more
    os.close(read)
    assert os.waitpid(pid, 0)[1] == 0


def fork_again():
    if os.fork() == 0:
        train("fork twice")
        os._exit(0)
    os._exit(0)


def main():
    torch.set_num_threads(1)  # a child of fork hangs in the parent's OpenMP
    forked(lambda: train("fork"))
    forked(fork_again)
    data = torch.utils.data.TensorDataset(torch.zeros(12, WIDTH))
    train("loader", torch.utils.data.DataLoader(data, 4, num_workers=2, pin_memory=True))
    forked(lambda: train("fork after"))
    for way in ("spawn", "forkserver"):
        process = multiprocessing.get_context(way).Process(target=train, args=(way,))
        process.start()
        process.join()
        assert process.exitcode == 0, way
    os._exit(7)


if __name__ == "__main__":
    main()
