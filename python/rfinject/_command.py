"""Finds and runs the command `rfinject`, and makes exceptions of its complaints."""
import os
import shutil
import subprocess
import sysconfig
import warnings
from typing import Dict, List, Optional, Sequence, Union


class RfinjectError(RuntimeError):
    """The command failed. The text is its own line; `command` is what was run, `code` its exit code."""

    def __init__(self, text: str, command: Sequence[str] = (), code: Optional[int] = None) -> None:
        super().__init__(text)
        self.command = list(command)
        self.code = code


class RfinjectWarning(UserWarning):
    """The command gave an answer and had something to complain of, such as a trace that is damaged at its end."""


def find() -> str:
    """The path of the command: RFINJECT_COMMAND, else the one that was installed with this package, else PATH's."""
    named = os.environ.get("RFINJECT_COMMAND")
    if named:
        return named
    here = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", "posix_user"),
            os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin")]  # pip install --target
    for folder in here:
        beside = os.path.join(folder, "rfinject")
        if os.access(beside, os.X_OK) and os.path.isfile(beside):
            return beside
    found = shutil.which("rfinject")
    if found is None:
        raise RfinjectError("the command rfinject is neither in {} nor in PATH; RFINJECT_COMMAND can name it".format(
            " nor in ".join(here)))
    return found


def environment() -> Dict[str, str]:
    """The environment of a command that reads traces: without the library, in case this process is profiled itself."""
    keep = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "CUDA_INJECTION64_PATH")}
    keep["RFINJECT_CONFIG"] = ""  # what is read here must not depend on the user's defaults
    preload = [path for path in os.environ.get("LD_PRELOAD", "").split(":") if not path.endswith("librfinject.so")]
    if any(preload):
        keep["LD_PRELOAD"] = ":".join(preload)
    return keep


def absolute(path: Union[str, "os.PathLike[str]"]) -> str:
    """`path` from the root. Raises RfinjectError for an empty one, which would mean the whole working folder where a
    variable was not set, and for a relative one in a working folder that was removed."""
    named = os.fspath(path)
    if not named:
        raise RfinjectError("the path of the trace is empty; '.' means the working folder")
    try:
        return os.path.abspath(named)
    except FileNotFoundError as error:
        raise RfinjectError(f"{named}: the working folder was removed; change to another one, or name the trace from the "
                            "root") from error


def complaint(stderr: str) -> str:
    """The command's lines without its name in front."""
    lines = [line[len("rfinject: "):] if line.startswith("rfinject: ") else line for line in stderr.splitlines()]
    return "\n".join(line for line in lines if line.strip())


def run(arguments: Sequence[str], makes: Optional[str] = None) -> str:
    """What the command prints, given `arguments`; `makes` is the file that it writes instead, if it does.

    Raises RfinjectError when it fails without an answer. An answer that comes with a failure, as of a trace that is
    damaged at its end, is returned, and its complaint becomes a RfinjectWarning.
    """
    command: List[str] = [find(), *arguments]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=environment(), check=False)
    except OSError as error:
        raise RfinjectError(f"{command[0]}: {error.strerror}", command) from error
    text = done.stdout.decode("utf-8", "replace")
    said = complaint(done.stderr.decode("utf-8", "replace"))
    answered = bool(text) if makes is None else os.path.exists(makes)
    if done.returncode != 0 and not answered:
        raise RfinjectError(said or f"the command ended with {done.returncode}", command, done.returncode)
    if done.returncode != 0:
        warnings.warn(said, RfinjectWarning, stacklevel=3)
    return text
