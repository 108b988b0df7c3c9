"""What programs of third parties are held against: PyTorch's own count of FLOP, of a program's first step.

    for i in range(steps):
        with counted(i):
            ...             # a whole step

The first step is counted and prints "flop N"; rfinject leaves it out (--skip 1), since the counter is in its way. A trainer
of a package enters through `CountedStep`.
"""
import contextlib

from torch.utils.flop_counter import FlopCounterMode


class CountedStep:
    """Counts from `begin` to `end`, once."""

    def __init__(self):
        self._counter = None
        self._done = False

    def begin(self):
        if not self._done and self._counter is None:
            self._counter = FlopCounterMode(display=False)
            self._counter.__enter__()

    def end(self):
        if self._counter is not None and not self._done:
            self._counter.__exit__(None, None, None)
            print("flop", self._counter.get_total_flops(), flush=True)
            self._done = True


@contextlib.contextmanager
def counted(step):
    if step > 0:
        yield
        return
    with FlopCounterMode(display=False) as counter:
        yield
    print("flop", counter.get_total_flops(), flush=True)
