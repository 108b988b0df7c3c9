"""Runs programs under the command and reads what it then says, for the tests beside this file.

Environment: RFINJECT, the command; RFINJECT_LIBRARY, the library; RFINJECT_PYTHON, the interpreter for programs.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import torch_exit  # noqa: E402
from prefork import Prefork  # noqa: E402
from torchrun import torchrun  # noqa: E402

RFINJECT = os.environ["RFINJECT"]
PYTHON = os.environ.get("RFINJECT_PYTHON") or sys.executable
GPU = "V100-SXM2-16GB"
TIMEOUT_S = 550
FORKED_RANKS = pathlib.Path(__file__).resolve().parents[1] / "forked_ranks.py"


class TestCase(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="rfinject-runs-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.environment = {key: value for key, value in os.environ.items()
                            if key not in ("LD_PRELOAD", "CUDA_INJECTION64_PATH", "RFINJECT")
                            and (not key.startswith("RFINJECT_") or key == "RFINJECT_LIBRARY")}
        self.environment["OMP_NUM_THREADS"] = "1"
        self.environment["RFINJECT_ESTIMATE_ON"] = "cpu"  # the same programs on every build of torch
        # A command built with AddressSanitizer refuses to start after a preloaded library otherwise.
        self.environment["ASAN_OPTIONS"] = "verify_asan_link_order=0:detect_leaks=0"

    def cli(self, *words, expect=0, **variables):
        result = subprocess.run([RFINJECT, *map(str, words)], cwd=self.folder, capture_output=True, text=True,
                                env={**self.environment, **variables}, timeout=TIMEOUT_S)
        if expect is not None:
            self.assertEqual(result.returncode, expect, result.stderr)
        return result

    def write(self, name, source):
        (self.folder / name).write_text(textwrap.dedent(source))
        return name

    def run_program(self, source, *options, name="train.py", arguments=()):
        """Runs a program's text; what the command itself said."""
        return self.cli("--estimate", GPU, *options, PYTHON, self.write(name, source), *arguments)

    def run_job(self, ranks, source, *options, launcher=(), arguments=()):
        """Runs a program's text under torchrun; what the command itself said."""
        log = self.folder / "log"

        def run():
            log.mkdir(exist_ok=True)
            return self.cli("--estimate", GPU, *options, PYTHON, *torchrun(ranks, log, *launcher),
                            self.write("train.py", source), *arguments, expect=None)

        def forget():
            shutil.rmtree(self.folder)
            self.folder.mkdir()

        result = torch_exit.repeated(run, forget)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def report(self, *words, **kwargs):
        return json.loads(self.cli("report", *words, "--format", "json", **kwargs).stdout)

    def profile(self, source, *report_options):
        """The report of one run of a program's text."""
        shutil.rmtree(self.folder / "rfinject-out", ignore_errors=True)
        self.run_program(source)
        return self.report(*report_options)


    def training_and_validation(self, source):
        """Both reports of one run of a program's text."""
        reports = self.profile(source)["reports"]
        self.assertEqual(len(reports), 2)
        return sorted(reports, key=lambda report: any(phase["phase"] == "eval" for phase in report["phases"]))


class ForkedTestCase(TestCase):
    """Programs run in children of one process that the command has started, which lives as long as the class."""

    forked = None

    @classmethod
    def tearDownClass(cls):
        if cls.forked is not None:
            cls.forked.close()
            shutil.rmtree(cls.traces, ignore_errors=True)
        cls.forked = None

    def run_program(self, source):
        """Runs a program's text; the trace is where that of the latest run would be."""
        return self.run_in_child(self.folder / self.write("train.py", source))

    def run_ranks_in_children(self, ranks, source, *arguments):
        """Runs a program's text in ranks, for what does not depend on torchrun; the traces are where those of the latest run
        would be."""
        return self.run_in_child(FORKED_RANKS, ranks, self.folder / self.write("train.py", source), *arguments, of="*")

    def run_in_child(self, path, *arguments, of=None):
        cls = type(self)
        if cls.forked is None:
            cls.traces = tempfile.mkdtemp(prefix="rfinject-runs-test-")
            cls.forked = Prefork([RFINJECT, "--estimate", GPU, "-o", cls.traces + "/", PYTHON], self.environment)
        pid, result = cls.forked.run(str(path), *map(str, arguments), cwd=self.folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        run = self.folder / "rfinject-out" / "run"
        run.mkdir(parents=True)
        for trace in pathlib.Path(cls.traces).glob(f"*.{of or pid}.rfx"):
            shutil.move(trace, run)
        (run.parent / "latest").symlink_to(run.name)
        return result
