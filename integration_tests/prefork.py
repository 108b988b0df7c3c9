"""Programs in children of a process that has imported torch, which takes longer than most programs of the tests.

What a program does is the same in a child. Who tests how the library gets into a process runs one itself.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile

# Runs programs, which it is told of by lines, each in a child of its own, in its folder.
FORKING = """
import gc, importlib, json, os, sys
import torch
try:
    import torch._dynamo  # as the first step of an optimizer does
except ImportError:  # before torch 2
    pass
for name in sys.argv[1:]:
    importlib.import_module(name)
gc.freeze()  # else each child looks at all of torch's objects again when it ends, which takes longer than its program
for line in sys.stdin:
    path, arguments, streams, folder, variables = json.loads(line)
    child = os.fork()
    if child == 0:
        os.environ.update(variables)
        for number, name in enumerate(streams):
            os.dup2(os.open(name, (os.O_WRONLY if number else os.O_RDONLY) | os.O_CREAT, 0o600), number)
        os.chdir(folder)
        sys.path[0] = os.path.dirname(path)
        sys.argv = [path, *arguments]
        with open(path) as file:
            exec(compile(file.read(), path, "exec"), {"__name__": "__main__", "__file__": path})
        break  # and the interpreter ends as after any program
    print(child, flush=True)
    print(os.waitpid(child, 0)[1], flush=True)
else:
    os._exit(0)  # which says nothing of what gc.freeze kept
"""

# How Triton's bindings begin to complain, at the end of a child, of what gc.freeze kept.
NOT_COLLECTED = "nanobind: leaked"


class Prefork:
    """Use as: Prefork([python], env).run("/folder/program.py", "argument", NAME="value"), where the program is to find
    NAME in its environment, too. `command` gets Python's own arguments behind it; `modules` are imported beside torch.
    The process is started in `cwd`, which rfinject takes for the folder of the programs."""

    def __init__(self, command, env, modules=(), cwd=None):
        self.folder = tempfile.mkdtemp(prefix="rfinject-test-")
        self.process = subprocess.Popen([*command, "-c", FORKING, *modules], env=env, cwd=cwd, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, universal_newlines=True)

    def run(self, path, *arguments, cwd=None, **variables):
        """The child's process id, and what subprocess.run would return of it. It runs in the program's folder, or in `cwd`."""
        out, err = os.path.join(self.folder, "out"), os.path.join(self.folder, "err")
        pid = self._ask(path, arguments, (os.devnull, out, err), cwd, variables)
        code = self._code()
        texts = []
        for name in (out, err):
            with open(name) as file:
                texts.append(file.read().partition(NOT_COLLECTED)[0])
            os.unlink(name)
        return pid, subprocess.CompletedProcess([], code, *texts)

    def start(self, path, *arguments, cwd=None, **variables):
        """The same of a program that runs. It is to have ended before there is another one."""
        return Started(self, path, arguments, cwd, variables)

    def _ask(self, path, arguments, streams, cwd, variables):
        self.process.stdin.write(json.dumps((path, arguments, streams, str(cwd or os.path.dirname(path)), variables)) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def _code(self):
        status = int(self.process.stdout.readline())
        return os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Started:
    """What of subprocess.Popen is needed of a program that runs in a child of a Prefork."""

    def __init__(self, prefork, path, arguments, cwd, variables):
        self.prefork, self.returncode = prefork, None
        names = [os.path.join(prefork.folder, name) for name in ("in", "out", "err")]
        for name in names:
            os.mkfifo(name)
        self.pid = prefork._ask(path, arguments, names, cwd, variables)
        self.stdin, self.stdout, self.stderr = open(names[0], "w"), open(names[1]), open(names[2])
        for name in names:
            os.unlink(name)

    def communicate(self):
        """What it wrote, when it has ended because its standard input did."""
        if self.returncode is None:
            self.stdin.close()
            self.texts = self.stdout.read(), self.stderr.read().partition(NOT_COLLECTED)[0]
            self.stdout.close()
            self.stderr.close()
            self.returncode = self.prefork._code()
        return self.texts

    def kill(self):
        if self.returncode is None:
            os.kill(self.pid, signal.SIGKILL)
