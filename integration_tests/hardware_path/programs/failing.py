"""failing.py STEPS CODE [FUNCTION...]: trains on CUDA once for each function that the measuring calls, in a forked process
in which the simulated CUPTI fails that function's first call with CODE. Without functions, all that a good run calls.

Says "FUNCTION EXIT STEPS LOSSES" a line, the last for the first STEPS steps. The loss of a process that none of it concerns
is the same in all. A process trains on until the function was called, or, in a good run, until samples were read: when
that is, is a matter of the machine's time, and at most MOST times as long.
"""
import ctypes
import itertools
import os
import sys

import models
import torch

LAST = "cuptiPmSamplingCounterDataGetSampleInfo"  # of a good run's functions the one that is called last
MOST = 20


def called(world):
    """The functions of the simulated CUPTI that were called, in that order; nothing where it is not there."""
    if not hasattr(world, "sim_function"):
        return []
    world.sim_function.restype = ctypes.c_char_p
    return [name.decode() for name in iter(lambda at=itertools.count(): world.sim_function(ctypes.c_size_t(next(at))), None)]


def in_a_child(steps, code, function):
    """(wait status, what it said). Says the functions that were called where none is to fail."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        world = ctypes.CDLL(None)
        wanted = function or (LAST if hasattr(world, "sim_fail") else None)
        if function:
            world.sim_fail(function.encode(), code, 0)
        torch.manual_seed(0)
        model, loss_of = models.MODELS["lstm"]()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        losses = []
        while len(losses) < steps or (wanted and wanted not in called(world) and len(losses) < MOST * steps):
            optimizer.zero_grad()
            loss = loss_of()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        torch.cuda.synchronize()
        if not function and wanted:
            said = " ".join(called(world))
        else:
            said = "%d %d" % (len(losses), hash(tuple(losses[:steps])))
        os.write(writing, said.encode())
        os._exit(7)  # and not by the end of the interpreter, at which torch itself may abort (torch_exit.py)
    os.close(writing)
    with open(reading) as file:
        said = file.read()
    return os.waitpid(child, 0)[1], said


def main():
    steps, code, functions = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    if not functions:
        status, said = in_a_child(steps, 0, "")
        assert os.waitstatus_to_exitcode(status) == 7, status
        functions = said.split()
    for function in functions:
        status, said = in_a_child(steps, code, "" if function == "-" else function)
        print(function, os.waitstatus_to_exitcode(status), said, flush=True)
    print("trained")


main()
