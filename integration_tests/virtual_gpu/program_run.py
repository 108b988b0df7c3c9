"""A program of the tests of the virtual GPU that has run, and what its traces say."""
import atexit
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import torch_exit  # noqa: E402
from prefork import Prefork  # noqa: E402

RFINJECT = os.environ["RFINJECT"]
PYTHON = os.environ.get("RFINJECT_PYTHON") or sys.executable
PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
# What a program finds in its environment.
VARIABLES = {name: value for name, value in os.environ.items()
             if not name.startswith("RFINJECT_") and name != "CUDA_VISIBLE_DEVICES"}
GPU = "A100-SXM4-80GB"
FORKED = {}
# Of programs that torch.compile compiles. A product of padded operands would have more FLOP; Inductor pads where it measures
# that this is faster. Its pool of compilers would import torch in each.
COMPILING = {"modules": ("torch._inductor.compile_fx", "torch._inductor.codegen.triton"),
             "begun_with": (("TORCHINDUCTOR_SHAPE_PADDING", "0"), ("TORCHINDUCTOR_COMPILE_THREADS", "1"))}


def of_children(gpu, options, modules, begun_with):
    """The process whose children run programs on this board with these options, and the folder of their traces."""
    key = gpu, options, modules, begun_with
    if key not in FORKED:
        traces = tempfile.TemporaryDirectory(prefix="rfinject-virtual-gpu-")
        forked = Prefork([RFINJECT, "--estimate", gpu, *options, "-o", traces.name + "/", PYTHON], VARIABLES | dict(begun_with),
                         modules, cwd=PROGRAMS)
        atexit.register(lambda: (forked.close(), traces.cleanup()))
        FORKED[key] = forked, pathlib.Path(traces.name)
    return FORKED[key]


class Run:
    """A finished program: `out`, `err`, `code`, and `rows(by)` of its report."""

    def __init__(self, program, *arguments, gpu=GPU, options=(), launcher=(), environment=(), cwd=None):
        self._folder = tempfile.TemporaryDirectory(prefix="rfinject-virtual-gpu-")
        variables = VARIABLES | dict(environment)
        result = torch_exit.run(
            [RFINJECT, "--estimate", gpu, *options, "-o", self._folder.name + "/", PYTHON, *launcher,
             str(PROGRAMS / program), *map(str, arguments)],
            self._folder.name, env=variables, cwd=cwd, timeout=600)
        self.out, self.err, self.code = result.stdout, result.stderr, result.returncode

    @classmethod
    def in_child(cls, program, *arguments, gpu=GPU, options=(), modules=(), begun_with=(), environment=(), cwd=None):
        """The run of a program in a child of a process that has torch and `modules`, for what does not depend on how a
        process begins. There is one such process for each board, options and variables that it has begun with."""
        run = cls.__new__(cls)
        run._folder = tempfile.TemporaryDirectory(prefix="rfinject-virtual-gpu-")
        forked, traces = of_children(gpu, tuple(options), modules, begun_with)
        result = torch_exit.repeated(
            lambda: forked.run(str(PROGRAMS / program), *map(str, arguments), cwd=cwd, **dict(environment))[1],
            lambda: [trace.unlink() for trace in traces.iterdir()])
        # Those of the child, and of its own children.
        for trace in traces.iterdir():
            shutil.move(trace, run._folder.name)
        run.out, run.err, run.code = result.stdout, result.stderr, result.returncode
        return run

    @property
    def folder(self):
        return self._folder.name

    def close(self):
        self._folder.cleanup()

    def reports(self, by):
        """A report for training, and one for evaluation if there was any."""
        # check=True: a program that left no trace has no report.
        text = subprocess.run([RFINJECT, "report", self._folder.name, "--by", by, "--rows", "0", "--format", "json"],
                              check=True, capture_output=True, text=True).stdout
        reports = json.loads(text)
        return reports["reports"] if "reports" in reports else [reports]

    def memory(self):
        text = subprocess.run([RFINJECT, "report", self._folder.name, "--by", "memory", "--format", "json"],
                              check=True, capture_output=True, text=True).stdout
        return json.loads(text)["runs"][0]

    def report(self, by):
        return self.reports(by)[0]

    def processes(self):
        """The collector and the steps of each process that left a trace, by its id."""
        found = {}
        for path in pathlib.Path(self._folder.name).glob("*.rfx"):
            text = subprocess.run([RFINJECT, "report", path, "--format", "json"], check=True, capture_output=True,
                                  text=True).stdout
            report = json.loads(text)
            found[int(path.name.split(".")[-2])] = (report["collector"], report["steps"])
        return found
