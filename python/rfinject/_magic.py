"""The cell magic %%rfinject: runs a cell under the command, in a process of its own, and shows the result."""
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from typing import Any, Optional

from rfinject import _command
from rfinject._profile import Profile, load

RUNS = "rfinject-out"


def register(shell: Any) -> None:
    """Makes %%rfinject known to an IPython shell."""
    shell.register_magic_function(_run_cell, magic_kind="cell", magic_name="rfinject")


def _run_cell(line: str, cell: str) -> Optional[Profile]:
    """%%rfinject [options of `rfinject run`]: the cell runs as a program of its own under rfinject.

    Nothing of the notebook is in it: it imports what it needs. The options are those of `rfinject run`, such as
    --estimate A100, but for the output: the traces and the cell lie in a new folder of rfinject-out/.
    """
    options = shlex.split(line)
    for word in options:
        if word in ("-h", "--help", "--report") or word.startswith(("-o", "--output")):
            raise _command.RfinjectError(f"{word} is not for a cell: its traces go to a new folder in {RUNS}/, and its report "
                                         "is the cell's result")
    os.makedirs(RUNS, mode=0o700, exist_ok=True)
    folder = os.path.abspath(tempfile.mkdtemp(prefix="cell-", dir=RUNS))
    program = os.path.join(folder, "cell.py")
    with open(program, "w", encoding="utf-8") as file:
        file.write(cell)
    code = _run([_command.find(), "run", *options, "-o", folder.replace("%", "%%") + "/", "--", sys.executable, "-u", program])
    profile = None
    if any(name.endswith(".rfx") for name in os.listdir(folder)):
        profile = load(folder)
    if code != 0:
        if profile is not None:
            from IPython.display import display
            display(profile)
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        raise _command.RfinjectError(f"the cell {how}; it lies in {program}", code=code)
    if profile is None:
        raise _command.RfinjectError("no trace was written: the cell trained no model and called none")
    return profile


def _run(command: "list[str]") -> int:
    """Runs the command, with its output in the notebook; an interrupt of the kernel interrupts it. Returns its exit
    code."""
    environment = {**os.environ, "LD_PRELOAD": _command.environment().get("LD_PRELOAD", "")}
    # The cell's program finds modules as if it lay in the notebook's folder.
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [os.getcwd(), environment.get("PYTHONPATH")]))
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=environment, encoding="utf-8", errors="replace", start_new_session=True) as process:
        assert process.stdout is not None
        try:
            for text in process.stdout:
                sys.stdout.write(text)
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGINT)
            sys.stdout.write(process.stdout.read())
        return process.wait()
