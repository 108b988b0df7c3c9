"""failing.py STEPS CODE [FUNCTION...]: trains on CUDA once for each function that the measuring calls, in a forked process
in which the simulated CUPTI fails that function's first call with CODE. Without functions, all that a good run calls.

Says "FUNCTION CALLS EXIT LOSSES" a line. The loss of a process that none of it concerns is the same in all.
"""
import ctypes
import os
import sys

import models
import torch


def in_a_child(steps, code, function):
    """(wait status, what it said). Says the functions that were called where none is to fail."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        world = ctypes.CDLL(None)
        measured = hasattr(world, "sim_fail")
        if function:
            world.sim_fail(function.encode(), code, 0)
        torch.manual_seed(0)
        model, loss_of = models.MODELS["lstm"]()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        losses = []
        for _ in range(steps):
            optimizer.zero_grad()
            loss = loss_of()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        torch.cuda.synchronize()
        if not function and measured:
            world.sim_function.restype = ctypes.c_char_p
            names = iter(lambda at=iter(range(10000)): world.sim_function(ctypes.c_size_t(next(at))), None)
            said = " ".join(name.decode() for name in names)
        else:
            said = str(hash(tuple(losses)))
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
