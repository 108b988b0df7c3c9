"""Programs that are attached to while they run: `programs.py NAME` trains a small network in one of several ways until its
standard input ends, and prints for how many steps and what it has learnt. `programs.py NAME STEPS` does so many steps, leaves
out what only takes time, and prints the same."""

import asyncio
import logging
import os
import select
import signal
import sys
import threading
import time

import torch
from torch import nn

sys.path.insert(1, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from torchrun import unused_port  # noqa: E402


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(32, 64)
        self.rest = nn.Sequential(nn.ReLU(), nn.Linear(64, 8))

    def forward(self, x):
        return self.rest(self.first(x))


class Training:
    def __init__(self, steps):
        torch.manual_seed(1)
        self.net = Net()
        self.optimizer = torch.optim.Adam(self.net.parameters())
        self.steps, self.fast, self.goes_on, self.losses, self.heard = steps, steps > 0, True, [], []

    def step(self, batch=None):
        loss = self.net(torch.randn(16, 32) if batch is None else batch).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return self.has_stepped(loss)

    def has_stepped(self, loss):
        """Whether there is another step."""
        self.losses.append(loss.item())
        self.goes_on = len(self.losses) < self.steps if self.fast else not select.select([sys.stdin], [], [], 0)[0]
        return self.goes_on

    def pause(self, seconds=0.002):
        if not self.fast:
            time.sleep(seconds)


def plain(training):
    while training.step():
        training.pause()


def autocast(training):
    with torch.autocast("cpu", torch.bfloat16):
        plain(training)


def accumulate(training):
    """Four batches a step."""
    goes_on = True
    while goes_on:
        training.optimizer.zero_grad()
        for _ in range(4):
            loss = training.net(torch.randn(4, 32)).pow(2).mean() / 4
            loss.backward()
            training.pause(0.001)
        training.optimizer.step()
        goes_on = training.has_stepped(loss)


def checkpoint(training):
    """The backward pass computes the forward pass again."""
    from torch.utils.checkpoint import checkpoint as again
    rest = training.net.rest.forward
    training.net.rest.forward = lambda x: again(rest, x, use_reentrant=False)
    plain(training)


def closure(training):
    """The optimizer has the loss computed several times a step."""
    optimizer, goes_on = torch.optim.LBFGS(training.net.parameters(), lr=0.01, max_iter=4), True
    while goes_on:
        batch = torch.randn(16, 32)

        def compute():
            optimizer.zero_grad()
            loss = training.net(batch).pow(2).mean()
            loss.backward()
            return loss
        goes_on = training.has_stepped(optimizer.step(compute))
        training.pause()


def adversaries(training):
    """Two models and two optimizers, in turn."""
    critic = nn.Linear(8, 1)
    of_critic, goes_on = torch.optim.SGD(critic.parameters(), lr=0.01), True
    while goes_on:
        made = training.net(torch.randn(16, 32))
        of_critic.zero_grad()
        (critic(made.detach()).mean() - critic(torch.randn(16, 8)).mean()).backward()
        of_critic.step()
        training.pause(0.001)
        training.optimizer.zero_grad()
        loss = -critic(made).mean()
        loss.backward()
        training.optimizer.step()
        goes_on = training.has_stepped(loss)


def loader(training):
    """Each epoch forks two workers, one of which may be born while the process is attached to."""
    data = torch.utils.data.TensorDataset(torch.randn(160, 32))
    while training.goes_on:
        for (batch,) in torch.utils.data.DataLoader(data, batch_size=16, num_workers=0 if training.fast else 2):
            if not training.step(batch):
                break
            training.pause()


def c_code(training):
    """Computes in C without giving up the GIL, and in threads of torch's own."""
    torch.set_num_threads(1 if training.fast else 2)
    numbers = list(range(1 if training.fast else 200_000))
    while training.step():
        numbers.sort(key=lambda number: -number)


def threads(training):
    """200 threads that sleep, and four that compute in Python."""
    over = threading.Event()

    def compute():
        while not over.wait(0.001):
            sum(range(1000))
    crew = [] if training.fast else [threading.Thread(target=over.wait) for _ in range(200)]
    crew += [] if training.fast else [threading.Thread(target=compute) for _ in range(4)]
    for one in crew:
        one.start()
    plain(training)
    over.set()
    for one in crew:
        one.join()


def joined(training):
    """The main thread waits for the one that trains."""
    thread = threading.Thread(target=plain, args=(training,))
    thread.start()
    thread.join()


def forking(training):
    """Each step forks a child that trains a step of its own, and ends by os._exit."""
    while training.step():
        if training.fast:
            continue
        child = os.fork()
        if child == 0:
            training.net(torch.ones(1, 32)).sum().backward()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0


def signals(training):
    """A handler in Python, 200 times a second, that interrupts whatever waits."""
    seen = []
    if not training.fast:
        signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
        signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
    plain(training)
    signal.setitimer(signal.ITIMER_REAL, 0)


def waiting(training):
    """The main thread waits in epoll_wait between steps, which a stop ends with EINTR."""
    async def run():
        while training.step():
            if not training.fast:
                await asyncio.sleep(0.002)
    asyncio.run(run())


def sleeping(training):
    """Is nearly always in time.sleep, or in C without the GIL, as in a long synchronize of CUDA's."""
    import ctypes
    libc = ctypes.CDLL(None)
    while training.step():
        training.pause(0.1)
        libc.usleep(0 if training.fast else 100_000)


def notebook(training):
    """What ipykernel does: a loop of asyncio's on the main thread waits for cells, which another thread hears of. A cell is
    compiled and run in a namespace of the user's, the other thread sleeps, and the loop waits for a while between cells."""
    names = {"training": training, "__name__": "__main__"}
    cell = "for _ in range(3):\n    if not training.step():\n        break\n"

    async def run():
        loop, cells = asyncio.get_running_loop(), asyncio.Queue()

        def hear():
            while training.goes_on:
                training.pause(0.01)
                loop.call_soon_threadsafe(cells.put_nowait, cell)
                done.wait()
                done.clear()
        done = threading.Event()
        listener = threading.Thread(target=hear)
        listener.start()
        number = 0
        while training.goes_on:
            number += 1
            exec(compile(await cells.get(), f"<ipython-input-{number}>", "exec"), names)
            done.set()
        await loop.run_in_executor(None, listener.join)
    asyncio.run(run())


def compiled(training, backend="aot_eager"):
    """torch.compile, again and again, so that some of the time is spent in its traces."""
    import torch._dynamo
    net = training.net
    while training.goes_on:
        torch._dynamo.reset()
        training.net = torch.compile(net, backend=backend)
        for _ in range(10):
            if not training.step():
                break
            training.pause()


def inductor(training):
    logging.getLogger("torch.utils.cpp_extension").setLevel(logging.ERROR)  # which looks for CUDA
    compiled(training, "inductor")


def ddp(training):
    """Two ranks. Those of torchrun are told by their variables; without, this process forks them."""
    if "RANK" not in os.environ:
        os.environ.update(WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(unused_port()))
        child = os.fork()
        os.environ["RANK"] = "0" if child else "1"
    torch.distributed.init_process_group("gloo")
    rank, net = torch.distributed.get_rank(), training.net
    training.net = nn.parallel.DistributedDataParallel(net)
    going = torch.ones(1)
    while going:  # as long as the first rank does
        training.step()
        training.pause()
        going.fill_(training.goes_on)
        torch.distributed.broadcast(going, 0)
    torch.distributed.destroy_process_group()
    training.net = net
    if rank != 0:
        sys.stdout.flush()
        os._exit(0)


def hooks(training):
    """Most of the time is spent in Python hooks of the backward pass."""
    def spend(gradient):
        if not training.fast:
            end = time.monotonic() + 0.003
            while time.monotonic() < end:
                pass
        return gradient
    for parameter in training.net.parameters():
        parameter.register_hook(spend)
    plain(training)


def modes(training):
    """A third of the time a mode hears of every operator, or is in the middle of one, and else none has gradients."""
    from torch.utils._python_dispatch import TorchDispatchMode
    heard = set()

    class Listener(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            heard.add(str(function))
            spend()
            return function(*args, **(kwargs or {}))

    def spend():
        end = time.monotonic() + (0 if training.fast else 0.004)
        while time.monotonic() < end:
            pass
    while training.step():
        with Listener():
            torch.ones(2).exp()
            spend()
        with torch.inference_mode():
            training.net(torch.ones(1, 32))
            spend()
    training.heard = sorted(heard)


WAYS = {way.__name__: way for way in (
    plain, autocast, accumulate, checkpoint, closure, adversaries, loader, c_code, threads, joined, forking, signals, waiting,
    sleeping, notebook, compiled, inductor, ddp, hooks, modes)}


def main(way, steps="0"):
    torch.set_num_threads(1)
    training = Training(int(steps))
    if os.environ.get("RANK", "0") == "0":
        print("ready", flush=True)
    WAYS[way](training)
    weights = sum(parameter.double().abs().sum().item() for parameter in training.net.parameters())
    print(len(training.losses), repr(training.losses[::10]), training.heard, repr(weights), flush=True)
    if training.fast:
        os._exit(0)  # what Python and torch would take down costs more than the steps


if __name__ == "__main__":
    main(*sys.argv[1:])
