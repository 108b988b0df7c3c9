"""Says whether there is a GPU: where.py [MODULE], which is then imported first, without an import statement."""
import importlib
import sys

if len(sys.argv) > 1:
    importlib.import_module(sys.argv[1])
import torch

print("cuda", torch.cuda.is_available())
