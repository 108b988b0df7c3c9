"""A program of the tests of the virtual GPU that has run, and what its traces say."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import torch_exit  # noqa: E402

RFINJECT = os.environ["RFINJECT"]
PYTHON = os.environ.get("RFINJECT_PYTHON") or sys.executable
PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
# What a program finds in its environment.
VARIABLES = {name: value for name, value in os.environ.items()
             if not name.startswith("RFINJECT_") and name != "CUDA_VISIBLE_DEVICES"}


class Run:
    """A finished program: `out`, `err`, `code`, and `rows(by)` of its report."""

    def __init__(self, program, *arguments, gpu="A100-SXM4-80GB", options=(), launcher=(), environment=(), cwd=None):
        self._folder = tempfile.TemporaryDirectory(prefix="rfinject-virtual-gpu-")
        variables = VARIABLES | dict(environment)
        result = torch_exit.run(
            [RFINJECT, "--estimate", gpu, *options, "-o", self._folder.name + "/", PYTHON, *launcher,
             str(PROGRAMS / program), *map(str, arguments)],
            self._folder.name, env=variables, cwd=cwd, timeout=600)
        self.out, self.err, self.code = result.stdout, result.stderr, result.returncode

    @classmethod
    def of_child(cls, forked, traces, program, *arguments):
        """The run of a program in a child of a process that has torch and writes its traces into the folder `traces`."""
        run = cls.__new__(cls)
        run._folder = tempfile.TemporaryDirectory(prefix="rfinject-virtual-gpu-")
        pid, result = forked.run(str(PROGRAMS / program), *map(str, arguments))
        for trace in pathlib.Path(traces).glob(f"*.{pid}.rfx"):
            shutil.move(trace, run._folder.name)
        run.out, run.err, run.code = result.stdout, result.stderr, result.returncode
        return run

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
