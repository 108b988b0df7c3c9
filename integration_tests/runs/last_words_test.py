#!/usr/bin/env python3
"""What a program that `rfinject` has started says of its trace when it ends: one line, to people only.

    last_words_test.py [unittest arguments]     see programs.py for the environment
"""
import pathlib
import re
import subprocess
import sys
import unittest

import programs

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import pseudo_terminal  # noqa: E402

TRAINS = """
import sys, torch
net = torch.nn.Linear(4, 4)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    sgd.zero_grad()
    net(torch.ones(2, 4)).sum().backward()
    sgd.step()
print("result")
sys.exit(7)
"""
# Three steps, too, without an optimizer, whose first step takes torch 2 as long as its import.
INFERS = """
import sys, torch
net = torch.nn.Linear(4, 4)
with torch.no_grad():
    for _ in range(3):
        net(torch.ones(2, 4))
print("result")
sys.exit(7)
"""
FORKS = """
import os
""" + INFERS.replace("print(", "if os.fork() == 0: os._exit(0)\nos.wait()\nprint(")
IMPORTS = "import torch; print('result')"


class LastWords(programs.TestCase):
    def on_a_terminal(self, *words, environment=None):
        """Exit code, standard output, and what came to the terminal that standard error is."""
        result = pseudo_terminal.run([programs.RFINJECT, *words], "stderr", programs.TIMEOUT_S, cwd=self.folder,
                                     stdout=subprocess.PIPE, env={**self.environment, **(environment or {})})
        return result.returncode, result.stdout.decode(), result.stderr.decode().replace("\r\n", "\n")

    def run_here(self, source, *options, arguments=(), **kwargs):
        program = self.write("train.py", source)
        return self.on_a_terminal("--estimate", programs.GPU, *options, programs.PYTHON, program, *arguments, **kwargs)

    def test_a_trace_and_the_next_command(self):
        for source in (TRAINS, FORKS):
            code, out, said = self.run_here(source)
            self.assertEqual((code, out), (7, "result\n"))
            found = re.fullmatch(r"rfinject: 3 steps, trace in (rfinject-out/.*/.*\.rfx); next: rfinject report\n", said)
            self.assertTrue(found, said)
            self.assertTrue((self.folder / found[1]).exists(), said)

    def test_a_trace_that_was_named_is_named_again(self):
        _, _, said = self.run_here(INFERS, "--steps", "1", "-o", "mine/t.rfx")
        self.assertEqual(said, "rfinject: 1 step, trace in mine/t.rfx; next: rfinject report mine/t.rfx\n")
        self.cli(*said.split("next: rfinject ")[1].split())

    def test_a_trace_that_was_removed(self):
        _, _, said = self.run_here(INFERS.replace("print(", "import shutil; shutil.rmtree('rfinject-out')\nprint("))
        self.assertRegex(said, r"\Arfinject: 3 steps, but nothing is left of them: rfinject-out/.*\.rfx was removed "
                               r"while the program ran\n\Z")

    def test_why_there_is_no_trace(self):
        for source in (IMPORTS, "print('result')"):
            code, out, said = self.run_here(source)
            self.assertEqual((code, out), (0, "result\n"))
            self.assertRegex(said, r"\Arfinject: no trace: nothing in the program called a model .*\n\Z")
        # A shell that trains in a child has a trace.
        self.write("train.py", INFERS)
        _, _, said = self.on_a_terminal("--estimate", programs.GPU, "sh", "-c", f"{programs.PYTHON} train.py; true")
        self.assertEqual(said, "")

    @unittest.skipIf(pathlib.Path("/dev/nvidiactl").exists(), "there is a GPU here")
    def test_how_to_run_without_a_gpu(self):
        program = self.write("train.py", "raise RuntimeError('Found no NVIDIA driver')")
        code, _, said = self.on_a_terminal(programs.PYTHON, program)
        self.assertEqual(code, 1)
        self.assertRegex(said, r"\nrfinject: no trace, and no NVIDIA GPU here: 'rfinject --estimate .*\n\Z")

    def test_nobody_hears_it_who_did_not_want_to(self):
        self.assertEqual(self.run_here(INFERS, "-q")[2], "")
        self.assertEqual(self.run_here(IMPORTS, "-q")[2], "")
        for source, code in ((INFERS, 7), (IMPORTS, 0)):
            said = self.cli("--estimate", programs.GPU, programs.PYTHON, self.write("train.py", source), expect=code)
            self.assertEqual((said.stdout, said.stderr), ("result\n", ""))
        self.assertEqual(self.run_here(INFERS, environment={"RFINJECT_DISABLE": "1"})[2], "")

    def test_of_several_ranks_the_first_speaks(self):
        self.assertIn("3 steps", self.run_here(INFERS, environment={"RANK": "0", "WORLD_SIZE": "2"})[2])
        self.assertEqual(self.run_here(INFERS, environment={"RANK": "1", "WORLD_SIZE": "2"})[2], "")


if __name__ == "__main__":
    unittest.main()
