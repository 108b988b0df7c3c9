"""Tests Tests scripts/gpu_probe: without a GPU it says so; on the simulated one every probe that can answer does;
nothing that
fails keeps it from writing the other answers."""

import glob
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "gpu_probe"
BUILD = os.environ["PROBE_BUILD"]
PYTHON = os.environ.get("RFINJECT_PYTHON", sys.executable)


def run(*arguments, python=PYTHON):
    return subprocess.run([sys.executable, "-B", str(SCRIPT), "--build", BUILD, *arguments], capture_output=True,
                          text=True, timeout=280, env=dict(os.environ, PYTHON=str(python)))


class GpuProbe(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def answers(self):
        found = json.loads((self.folder / "out" / "answers.json").read_text(encoding="utf-8"))
        return {row["number"]: row for row in found["answers"]}

    @unittest.skipIf(glob.glob("/dev/nvidia[0-9]*"), "there is a GPU")
    def test_without_a_gpu(self):
        result = run("--out", str(self.folder / "out"))
        self.assertEqual((result.returncode, result.stdout), (3, ""))
        self.assertRegex(result.stderr, r"^gpu_probe: no NVIDIA GPU here .*\n$")
        self.assertFalse((self.folder / "out").exists())

    @unittest.skipUnless(glob.glob(os.environ["SIM_REAL_CUPTI"] + "/libcupti.so*"), "no real CUPTI to plan with")
    def test_the_simulated_gpu_answers(self):
        result = run("--simulated", "--out", str(self.folder / "out"))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        rows = self.answers()
        listed = {int(line.split()[0]) for line in run("--list").stdout.splitlines()}
        self.assertEqual(set(rows), listed)
        for number in (1, 2, 3, 6, 7, 8, 9, 11, 15, 19, 31, 32, 33, 34, 41, 51, 52, 53):
            self.assertEqual(rows[number]["verdict"], "yes", rows[number])
        # As on an H100 (probe/session.txt of its recording): other metrics need a session that is enabled anew.
        self.assertEqual(rows[12]["verdict"], "no", rows[12])
        for number in (4, 5, 10, 42):
            self.assertEqual(rows[number]["verdict"], "seen", rows[number])
        for number in (13, 14, 16, 17, 18, 20, 43):
            self.assertEqual(rows[number]["verdict"], "not answered", rows[number])
        for row in rows.values():
            self.assertNotIn("the probe itself failed", row["seen"])
        text = (self.folder / "out" / "answers.md").read_text(encoding="utf-8")
        self.assertIn("nothing about any GPU", text)
        self.assertEqual(len(re.findall(r"^\| \d+ \| ", text, re.M)), len(rows))
        logs = list((self.folder / "out" / "raw").iterdir())
        self.assertGreater(len(logs), 15)
        for log in logs:
            self.assertRegex(log.read_text(encoding="utf-8"),
                             r"^\$ [^\n]*\n(?s:.*)\n# exit code \S+ after [0-9.]+ s\n$")

    def test_what_fails_leaves_the_others_their_answers(self):
        python = self.folder / "python"
        python.write_text("#!/bin/sh\nexec %s -I -S \"$@\"\n" % sys.executable, encoding="utf-8")  # has no torch
        python.chmod(0o755)
        result = run("--simulated", "--only", "1,8,14", "--out", str(self.folder / "out"), python=python)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        rows = self.answers()
        self.assertEqual(set(rows), {1, 8, 14})
        self.assertEqual(rows[1]["verdict"], "not answered")
        self.assertRegex(rows[1]["seen"], "no trace was written .*PyTorch")
        self.assertEqual(rows[8]["verdict"], "no")

    def test_no_process_is_left_behind(self):
        # The time ends while a probe watches the clocks.
        run("--simulated", "--minutes", "0", "--only", "4,5,10", "--out", str(self.folder / "out"))
        left = []
        for command in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if str(self.folder).encode() in command.read_bytes():
                    left.append(command.read_bytes())
            except OSError:
                pass  # ended meanwhile
        self.assertEqual(left, [])

    def test_the_time_is_bounded(self):
        result = run("--simulated", "--minutes", "0", "--out", str(self.folder / "out"))
        self.assertEqual(result.returncode, 0)
        self.assertEqual(self.answers()[1]["seen"], "the time was up")

    def test_usage(self):
        self.assertEqual(run("--only", "999").returncode, 2)
        self.assertEqual(run("--only", "x").returncode, 2)

    def test_the_document_names_the_probe_of_each_question(self):
        text = (ROOT / "integration_tests/gpu/QUESTIONS.md").read_text(encoding="utf-8")
        for line in run("--list").stdout.splitlines():
            number = line.split()[0]
            row = re.search(r"^\| %s \|.*$" % number, text, re.M).group(0)
            self.assertIn("`scripts/gpu_probe --only %s`" % number, row)


if __name__ == "__main__":
    unittest.main()
