"""peak.py PROGRAM ARGUMENTS...: runs a program, and prints the most memory that torch had given out of the GPU, in bytes."""
import pathlib
import runpy
import sys

import torch

del sys.argv[0]
runpy.run_path(str(pathlib.Path(__file__).with_name(sys.argv[0])), run_name="__main__")
print("peak", torch.cuda.max_memory_allocated())
print("trained")
