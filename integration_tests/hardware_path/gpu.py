"""Runs a program on a GPU that is not there (site/sitecustomize.py), measured by rfinject or alone."""
import atexit
import json
import os
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import torch_exit  # noqa: E402
from prefork import Prefork  # noqa: E402

PROGRAMS = HERE / "programs"

# What the program's driver says of the board. The names say what they are: nothing that is made up here may be taken
# for a GPU's.
A100 = {"name": "Simulated A100", "devices": 1, "cc_major": 8, "cc_minor": 0, "sm_count": 108,
        "memory_bytes": 40 << 30, "l2_bytes": 40 << 20, "sm_hz": 1.41e9, "dram_bytes_per_s": 1.5e12,
        "pcie_bytes_per_s": 25e9, "quiet": 1}
H100 = dict(A100, name="Simulated H100", cc_major=9, sm_count=132, memory_bytes=80 << 30, l2_bytes=50 << 20)
V100 = dict(A100, name="Simulated V100", cc_major=7, sm_count=80, memory_bytes=16 << 30, l2_bytes=6 << 20)


def environment(board, cupti, devices=1, **more):
    """The environment of a process that is to have `board`; `cupti` is one of the simulated ones' paths, or ""."""
    variables = {name: value for name, value in os.environ.items()
                 if not name.startswith("RFINJECT_") and name not in ("LD_PRELOAD", "CUDA_VISIBLE_DEVICES")}
    variables.update(
        PYTHONPATH=str(HERE / "site"),
        RFX_SIM_BOARD=json.dumps(dict(board, devices=devices)),
        RFX_SIM_LIBRARIES=os.environ["VIRTUAL_GPU_FOLDER"],
        RFX_SIM_FOLDER=os.environ["SIM_FOLDER"],
        RFX_SIM_CUPTI=cupti,
        SIM_REAL_CUPTI=os.environ["SIM_REAL_CUPTI"],
        # Triton links its launchers with the driver; rfinject says where it is under --estimate only.
        TRITON_LIBCUDA_PATH=os.environ["VIRTUAL_GPU_FOLDER"])
    variables.update({name: str(value) for name, value in more.items()})
    return variables


def run(command, variables, timeout=300, traces=""):
    """`traces` is the folder that the program leaves traces in."""
    return torch_exit.run([str(word) for word in command], traces, env=variables, timeout=timeout)


PYTHON = os.environ.get("RFINJECT_PYTHON") or sys.executable
forked = {}


def run_in_child(variables, program, *arguments, command=()):
    """As run, in a child of a process that has torch, with the folder of the traces that it left: there is one such process
    for each environment and command."""
    key = *command, *sorted(variables.items())
    if key not in forked:
        left = tempfile.TemporaryDirectory(prefix="rfinject-hardware-path-")
        words = [*command, *(["-o", left.name + "/"] if command else []), PYTHON]
        forked[key] = Prefork(words, variables), pathlib.Path(left.name)
        atexit.register(left.cleanup)
        atexit.register(forked[key][0].close)
    prefork, folder = forked[key]
    result = torch_exit.repeated(lambda: prefork.run(str(program), *map(str, arguments))[1],
                                 lambda: [trace.unlink() for trace in folder.iterdir()])
    traces = tempfile.TemporaryDirectory(prefix="rfinject-hardware-path-")
    for trace in folder.iterdir():
        trace.rename(pathlib.Path(traces.name) / trace.name)
    return result, traces
