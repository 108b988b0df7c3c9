"""The operators that a program runs, step by step, for comparing those of two devices."""
import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Operators(TorchDispatchMode):
    """Notes the operators that run, as they are named on either device."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        self.names.append(str(function))
        return function(*arguments, **(keywords or {}))


def print_step(name, number, step):
    """Calls `step(number)` and prints a line: what it returned, and the operators that it ran."""
    with Operators() as operators:
        decided = step(number)
    # What brings numbers to the GPU, or back, runs on one device only.
    print(name, number, decided, *(name for name in operators.names if "_to_copy" not in name))


def print_steps(*programs):
    """Three steps of each program, which is a function of the step's number."""
    for program in programs:
        torch.manual_seed(1)
        for number in range(3):
            print_step(program.__name__, number, program)
