"""Runs pairs of programs, each in a child of a process that has imported torch, which takes longer than most of them.

    in_children.py PROGRAM...      in the folder of the programs; prints "ran PROGRAM fault|mended PID" for each child
"""
import importlib
import os
import runpy
import sys
import tempfile

importlib.import_module("torch")
try:
    importlib.import_module("torch._dynamo")  # each child's optimizer would import it
except ImportError:  # before torch 2
    pass

sys.path[0] = os.getcwd()
sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
import torch_exit  # noqa: E402


def main():
    for name in sys.argv[1:]:
        for which in ("fault", "mended"):
            for attempt in range(torch_exit.ATTEMPTS):
                with tempfile.TemporaryFile("w+") as stderr:
                    child = os.fork()
                    if child == 0:
                        os.dup2(stderr.fileno(), 2)
                        sys.argv = [f"{name}.py", which]
                        runpy.run_path(sys.argv[0], run_name="__main__")
                        return  # and the interpreter ends as after any program
                    _, status = os.waitpid(child, 0)
                    stderr.seek(0)
                    said = stderr.read()
                if status == 0:
                    break
                if torch_exit.MESSAGE not in said or attempt + 1 == torch_exit.ATTEMPTS:
                    sys.exit(f"{name} {which}: wait status {status}\n{said}")
            print("ran", name, which, child, flush=True)


if __name__ == "__main__":
    main()
