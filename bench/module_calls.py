"""What entering and leaving a layer adds to a module's call.

    python3 bench/module_calls.py LIBRARY [PYTHON] [ROUNDS]

Runs one program alternately with and without the library and prints the fastest call of each, in nanoseconds: a child
module that returns its argument, called by a root module. The difference is EnterModule, EnterLayer and their
counterparts; nothing is estimated or measured meanwhile.
"""

import os
import subprocess
import sys
import tempfile

PROGRAM = """
import time
import torch
from torch import nn
class Child(nn.Module):
    def forward(self, x):
        return x
class Root(nn.Module):
    def __init__(self):
        super().__init__()
        self.child = Child()
        self.weight = nn.Parameter(torch.ones(1))
    def forward(self, x, n):
        child = self.child
        start = time.perf_counter_ns()
        for _ in range(n):
            child(x)
        return time.perf_counter_ns() - start
root = Root()
best = 1e9
for _ in range(400):
    best = min(best, root(1, 500) / 500)
print(best)
"""


def once(python, library, output):
    env = dict(os.environ, RFINJECT_OUTPUT=output + "/", RFINJECT_LOG="quiet")
    if library:
        env["LD_PRELOAD"] = library
    return float(subprocess.run([python, "-c", PROGRAM], env=env, check=True, stdout=subprocess.PIPE).stdout)


def main(library, python=sys.executable, rounds="5"):
    plain, injected = [], []
    with tempfile.TemporaryDirectory() as output:
        for _ in range(int(rounds)):
            plain.append(once(python, None, output))
            injected.append(once(python, library, output))
    print("plain %.0f ns, with layers %.0f ns, difference %.0f ns" %
          (min(plain), min(injected), min(injected) - min(plain)))


if __name__ == "__main__":
    main(*sys.argv[1:])
