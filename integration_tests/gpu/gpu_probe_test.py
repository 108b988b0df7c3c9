"""Tests scripts/gpu_probe: without a GPU it says so; on the simulated one each block answers; nothing that fails keeps it from
writing the other answers."""

import glob
import json
import os
import pathlib
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
        return {row["what"]: row["seen"] for row in found["answers"]}

    @unittest.skipIf(glob.glob("/dev/nvidia[0-9]*"), "there is a GPU")
    def test_without_a_gpu(self):
        result = run("--out", str(self.folder / "out"))
        self.assertEqual((result.returncode, result.stdout), (3, ""))
        self.assertRegex(result.stderr, r"^gpu_probe: no NVIDIA GPU here .*\n$")
        self.assertFalse((self.folder / "out").exists())

    @unittest.skipUnless(glob.glob(os.environ["SIM_REAL_CUPTI"] + "/libcupti.so*"), "no real CUPTI to plan with")
    def test_the_simulated_gpu_answers(self):
        result = run("--simulated", "--out", str(self.folder / "out"))
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        seen = self.answers()
        self.assertNotIn("the probe itself failed", seen)
        self.assertNotIn("the rest of the block", seen)
        for program in ("resnet18_fp32", "resnet50_amp", "gpt_bf16"):
            self.assertRegex(seen[program + ": time"], r"^1500 steps of ")
            self.assertRegex(seen[program + ": keys"], r"^[1-9]\d*, of which \d+ have FLOP and \d+ bytes")
        self.assertRegex(seen["resnet18_fp32: keys"], "of which [1-9]")
        self.assertIn("A  the trace: collector range-profiler", result.stdout)
        for program in ("resnet18_fp32", "gpt_bf16", "streams", "moves"):
            self.assertIn("losses equal: True", seen[program + ": beside a plain run"])
        # The simulated CUPTI has one of the two at a time; that an H100 has it so is the question.
        self.assertRegex(seen["sessions"], r"^exit code 0; refused: sampling-begins-beside-a-session \d+; .*kept: ")
        self.assertRegex(seen["rfinject"], r"^[1-9]\d* rows")
        self.assertIn("does not run on the simulated GPU", seen["ncu"])
        text = (self.folder / "out" / "answers.md").read_text(encoding="utf-8")
        self.assertIn("nothing about any GPU", text)
        for log in (self.folder / "out" / "raw").iterdir():
            self.assertRegex(log.read_text(encoding="utf-8"), r"^\$ [^\n]*\n(?s:.*)\n# exit code \S+ after [0-9.]+ s\n$")

    def test_what_fails_leaves_the_others_their_answers(self):
        python = self.folder / "python"
        python.write_text("#!/bin/sh\nexec %s -I -S \"$@\"\n" % sys.executable, encoding="utf-8")  # has no torch
        python.chmod(0o755)
        result = run("--simulated", "--blocks", "A,B", "--out", str(self.folder / "out"), python=python)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        seen = self.answers()
        self.assertIn("no trace", seen["the rest of the block"])
        self.assertIn("sessions", seen)

    def test_no_process_is_left_behind_when_the_time_is_up(self):
        result = run("--simulated", "--minutes", "0.06", "--blocks", "A", "--out", str(self.folder / "out"))
        self.assertEqual(result.returncode, 0)
        left = []
        for command in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if str(self.folder).encode() in command.read_bytes():
                    left.append(command.read_bytes())
            except OSError:
                pass  # ended meanwhile
        self.assertEqual(left, [])

    def test_usage(self):
        self.assertEqual(run("--blocks", "E").returncode, 2)


if __name__ == "__main__":
    unittest.main()
