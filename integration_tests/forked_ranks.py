"""forked_ranks.py RANKS PROGRAM [ARGUMENT...]: runs a program in ranks that are children of this process, which has torch.

They have the variables that torchrun gives to its ranks. Ends with 1 if one of them failed.
"""
import os
import pathlib
import runpy
import sys

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent))
from torchrun import unused_port  # noqa: E402

count, program = int(sys.argv[1]), sys.argv[2]
variables = {"WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1",
             "MASTER_PORT": str(unused_port())}
children = []
for rank in range(count):
    children.append(os.fork())
    if children[-1] == 0:
        os.environ.update(variables, RANK=str(rank), LOCAL_RANK=str(rank))
        sys.argv, sys.path[0] = sys.argv[2:], os.path.dirname(program)
        runpy.run_path(program, run_name="__main__")
        sys.exit()  # the interpreter ends as after any program
statuses = [os.waitpid(child, 0)[1] for child in children]
sys.exit(any(statuses))
