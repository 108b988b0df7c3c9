#!/usr/bin/env python3
"""%%rfinject in a real IPython shell. support.py has the usage."""
import contextlib
import io
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

import support
from support import OPTIONS

TRAINING = """
import helper, torch
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(helper.STEPS):
    model(torch.ones(2, 8)).sum().backward()
    optimizer.step()
print("trained", flush=True)
"""


@support.needs_tools
class Magic(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        from IPython.core.interactiveshell import InteractiveShell
        folder = tempfile.TemporaryDirectory(prefix="rfinject-notebook-test-")
        cls.addClassCleanup(folder.cleanup)
        cls.addClassCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        pathlib.Path("helper.py").write_text("STEPS = 3\n")
        cls.shell = InteractiveShell.instance()
        cls.shell.run_line_magic("load_ext", "rfinject")

    def run_cell(self, line, cell):
        """The result, the exception and the output."""
        said = io.StringIO()
        # The programs' torch is another interpreter's than this shell's.
        with contextlib.redirect_stdout(said), mock.patch.object(sys, "executable", OPTIONS.python):
            outcome = self.shell.run_cell(f"%%rfinject {line}\n{cell}")
        return outcome.result, outcome.error_in_exec, said.getvalue()

    def test_a_cell_becomes_a_profile(self):
        profile, error, said = self.run_cell("--estimate A100-SXM4-40GB", TRAINING)
        self.assertIsNone(error, said)
        self.assertIn("trained\n", said)
        self.assertEqual(profile.reports[0]["steps"], 3)
        self.assertEqual(profile.reports[0]["device"]["name"], "A100-SXM4-40GB")
        folder, = profile.paths
        self.assertEqual(os.stat(folder).st_mode & 0o777, 0o700)
        self.assertIn("cell.py", os.listdir(folder))
        html = self.shell.display_formatter.format(profile)[0]["text/html"]
        self.assertIn("data:image/svg+xml", html)

    def test_what_fails_says_why(self):
        import rfinject
        for line, cell, wanted in (
                ("", "raise SystemExit(3)", "ended with exit code 3"),
                ("", "import os; os.kill(os.getpid(), 9)", "ended by SIGKILL"),
                ("", "print(1)", "no trace was written"),
                ("--estimate NoSuchGpu", "print(1)", "exit code 2"),
                ("-o here/", "print(1)", "-o is not for a cell")):
            result, error, _ = self.run_cell(line, cell)
            self.assertIsNone(result)
            self.assertIsInstance(error, rfinject.RfinjectError)
            self.assertRegex(str(error), wanted)

    def test_the_commands_own_line_is_shown(self):
        _, _, said = self.run_cell("--estimate NoSuchGpu", "print(1)")
        self.assertIn("no such GPU in the table", said)


if __name__ == "__main__":
    support.main()
