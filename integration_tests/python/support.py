"""Runs programs under librfinject.so and without it, for the tests beside this file.

Environment: RFINJECT_LIBRARY, the library; RFINJECT_PYTHON, the interpreter that programs run in (this one by
default); RFINJECT_OTHER_PYTHONS, more of them, separated by colons.
"""

import atexit
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import rfx_trace  # noqa: E402
from prefork import Prefork  # noqa: E402

LIBRARY = os.environ["RFINJECT_LIBRARY"]
PYTHON = os.environ.get("RFINJECT_PYTHON") or sys.executable
OTHER_PYTHONS = [path for path in os.environ.get("RFINJECT_OTHER_PYTHONS", "").split(":") if path]
FAKE_TORCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fake_torch")
GPU = "V100-SXM2-16GB"
TIMEOUT_S = 240


class Result:
    def __init__(self, process, files):
        self.code = process.returncode
        self.stdout = process.stdout
        self.stderr = process.stderr
        self.files = files
        self.traces = [rfx_trace.read_trace(path, strict=False) for path in self.files]

    @property
    def trace(self):
        if len(self.traces) != 1:
            raise AssertionError("%d traces, 1 expected; stderr: %s" % (len(self.traces), self.stderr))
        return self.traces[0]


class TestCase(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="rfinject-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        path = self.path(name)
        with open(path, "w") as file:
            file.write(textwrap.dedent(text))
        return path

    def environment(self, **variables):
        """The environment without rfinject, plus what is given; None removes a variable."""
        env = {key: value for key, value in os.environ.items()
               if not key.startswith(("RFINJECT_", "PYTHON")) and key not in ("LD_PRELOAD", "CUDA_INJECTION64_PATH")}
        env["OMP_NUM_THREADS"] = "1"  # the same sums in both runs
        env["PYTHONDONTWRITEBYTECODE"] = "1"
        for key, value in variables.items():
            if value is None:
                env.pop(key, None)
            else:
                env[key] = value
        return env

    def injected(self, output, **variables):
        # The programs run on the CPU: with a virtual GPU (integration_tests/virtual_gpu) they would be other
        # programs.
        settings = {"LD_PRELOAD": LIBRARY, "RFINJECT_OUTPUT": output + "/", "RFINJECT_ESTIMATE": GPU,
                    "RFINJECT_ESTIMATE_ON": "cpu"}
        settings.update(variables)
        return self.environment(**settings)

    def run_command(self, command, env, stdin=None, cwd=None, preexec=None):
        return subprocess.run(command, env=env, input=stdin, cwd=cwd or self.folder, preexec_fn=preexec,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
                              timeout=TIMEOUT_S)

    def inject(self, command, stdin=None, cwd=None, **variables):
        """Runs `command` (a list) under the library."""
        output = tempfile.mkdtemp(dir=self.folder)
        return Result(self.run_command(command, self.injected(output, **variables), stdin, cwd),
                      rfx_trace.trace_files(output))

    def plain(self, command, stdin=None, cwd=None, **variables):
        output = tempfile.mkdtemp(dir=self.folder)
        return Result(self.run_command(command, self.environment(**variables), stdin, cwd),
                      rfx_trace.trace_files(output))

    def program(self, source, python=PYTHON, arguments=(), **variables):
        """Runs a program's text under the library. Fails the test unless it ends well."""
        path = self.write("program.py", source)
        result = self.inject([python, path, *arguments], **variables)
        self.assertEqual(result.code, 0, result.stderr)
        return result

    def both(self, source, python=PYTHON, same_stderr=False, **variables):
        """Runs a program's text with and without the library; the streams and the exit code must agree."""
        path = self.write("program.py", source)
        plain = self.plain([python, path], **variables)
        result = self.inject([python, path], **variables)
        self.assert_the_same(plain, result, same_stderr)
        return result

    def assert_the_same(self, plain, result, same_stderr=False):
        self.assertEqual(result.stdout, plain.stdout, result.stderr)
        self.assertEqual(result.code, plain.code, result.stderr)
        if same_stderr:
            self.assertEqual(result.stderr, plain.stderr)

    def assert_all_attributed(self, trace):
        """No operator of a forward or a backward is without a layer."""
        lost = [(row["op"], row["phase"], row["launches"]) for row in trace.rows()
                if row["layer"] is None and row["phase"] in ("forward", "backward", "recompute")]
        self.assertEqual(lost, [])

    def ops(self, trace, phase=None):
        """{(model, layer): {op: launches}} of a phase, or of all."""
        out = {}
        for row in trace.rows():
            if phase is None or row["phase"] == phase:
                layer = out.setdefault((row["model"], row["layer"]), {})
                layer[row["op"]] = layer.get(row["op"], 0) + row["launches"]
        return out


class ForkedTestCase(TestCase):
    """Programs run in children of two processes: one under the library, which lives as long as the class, and one without,
    which serves all classes."""

    forked = None  # a class's own, because the tier is that of a process
    without = []

    @classmethod
    def tearDownClass(cls):
        if cls.forked is not None:
            cls.forked.close()
            shutil.rmtree(cls.traces, ignore_errors=True)
        cls.forked = None

    def forked_without(self):
        if not self.without:
            self.without.append(Prefork([PYTHON], self.environment()))
            atexit.register(self.without[0].close)
        return self.without[0]

    def forked_under_the_library(self):
        cls = type(self)
        if cls.forked is None:
            cls.traces = tempfile.mkdtemp(prefix="rfinject-test-")
            cls.forked = Prefork([PYTHON], self.injected(cls.traces))
        return cls.forked

    def in_child(self, source, injected):
        forked = self.forked_under_the_library() if injected else self.forked_without()
        pid, process = forked.run(self.write("program.py", source))
        return Result(process, [path for path in rfx_trace.trace_files(self.traces)
                                if ".%d." % pid in os.path.basename(path)] if injected else [])

    def program(self, source):
        result = self.in_child(source, True)
        self.assertEqual(result.code, 0, result.stderr)
        return result

    def both(self, source, same_stderr=False):
        plain, result = (self.in_child(source, injected) for injected in (False, True))
        self.assert_the_same(plain, result, same_stderr)
        return result


def torch_version(python=PYTHON):
    """Major and minor of the interpreter's torch, which is not imported for it; None where it has none."""
    text = subprocess.run([python, "-c", "from importlib.metadata import version; print(version('torch'))"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, universal_newlines=True).stdout
    found = re.match(r"(\d+)\.(\d+)", text)
    return tuple(map(int, found.groups())) if found else None


def main():
    unittest.main(verbosity=2)
