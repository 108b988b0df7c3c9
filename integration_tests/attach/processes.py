"""Commands and processes for the tests beside this file.

Environment: RFINJECT, the command; RFINJECT_LIBRARY, the library; RFINJECT_PYTHON, the interpreter for programs.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

RFINJECT = os.environ["RFINJECT"]
PYTHON = os.environ.get("RFINJECT_PYTHON") or sys.executable
HERE = pathlib.Path(__file__).resolve().parent
GPU = "V100-SXM2-16GB"
TIMEOUT_S = 300


class TestCase(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="rfinject-attach-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.environment = {key: value for key, value in os.environ.items()
                            if key not in ("LD_PRELOAD", "CUDA_INJECTION64_PATH", "RFINJECT")
                            and (not key.startswith("RFINJECT_") or key == "RFINJECT_LIBRARY")}
        self.environment["OMP_NUM_THREADS"] = "2"

    def cli(self, *words, expect=0, **options):
        result = subprocess.run([RFINJECT, *map(str, words)], cwd=self.folder, capture_output=True, text=True,
                                env=self.environment, timeout=TIMEOUT_S, **options)
        self.assertEqual(result.returncode, expect, result.stderr)
        return result

    def start(self, *words, **options):
        """A process that ends with the test, at the latest."""
        process = subprocess.Popen([*map(str, words)], cwd=self.folder, env={**self.environment, **options.pop("variables", {})},
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def wait_for_request(self, process, before):
        """Until a command has put its request into the process, whose maps were `before`."""
        folder = pathlib.Path(f"/proc/{process.pid}")
        while (folder / "maps").read_text() == before or "TracerPid:\t0\n" not in (folder / "status").read_text():
            pass

    def end(self, process):
        """What the process wrote, when it has ended because its standard input did."""
        out, errors = process.communicate()
        self.assertEqual((process.returncode, errors), (0, ""))
        return out
