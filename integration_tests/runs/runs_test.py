#!/usr/bin/env python3
"""A run is a unit: where its traces go, which ones are added up, and which one is meant.

    runs_test.py [unittest arguments]     see programs.py for the environment
"""
import json
import os
import signal
import stat
import unittest

import programs

TRAIN = """
import sys, torch
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.ones(int(sys.argv[1]) if len(sys.argv) > 1 else 4, 64)).sum().backward()
    optimizer.step()
"""
# Three steps, too, without an optimizer, whose first step takes torch 2 as long as its import.
INFER = """
import sys, torch
model = torch.nn.Linear(64, 64)
with torch.no_grad():
    for _ in range(3):
        model(torch.ones(int(sys.argv[1]) if len(sys.argv) > 1 else 4, 64))
"""
# Runs until what it did is in the file, and is then killed.
KILL = """
import glob, os
sizes = set()
while len(sizes) < 3:
    model(torch.ones(4, 64)).sum().backward()
    optimizer.step()
    sizes.add(sum(map(os.path.getsize, glob.glob("rfinject-out/latest/*.rfx"))))
os.kill(os.getpid(), 9)
"""
RANKS = """
import os, subprocess, sys
if "RANK" in os.environ:
    import torch
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        model(torch.ones(4, 8)).sum().backward()
        optimizer.step()
else:
    for rank in range(2):
        subprocess.run([sys.executable, *sys.argv], check=True,
                       env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2"})
"""


class Runs(programs.TestCase):
    def test_a_second_run_is_not_added_to_the_first(self):
        self.run_program(TRAIN)
        first = self.report()
        self.run_program(TRAIN, name="other.py", arguments=["4096"])
        second = self.report()
        self.assertEqual((first["steps"], second["steps"]), (3, 3))
        self.assertEqual((first["process_count"], second["process_count"]), (1, 1))
        self.assertGreater(second["summary"]["time_ns"], first["summary"]["time_ns"])
        rows = json.loads(self.cli("runs", "--format", "json").stdout)["runs"]
        self.assertEqual([(row["steps"], row["ranks"], row["gpu"]) for row in rows], [(3, 1, programs.GPU)] * 2)
        self.assertIn("train.py", rows[0]["command"])
        self.assertIn("other.py 4096", rows[1]["command"])
        sweep = json.loads(self.cli("report", "--by", "run", "--format", "json").stdout)["runs"]
        self.assertEqual([row["steps"] for row in sweep], [3, 3])
        # Each run can be named. The folder of all stands for its newest, and the command says so.
        self.assertEqual(self.report(rows[0]["path"])["summary"]["time_ns"], first["summary"]["time_ns"])
        result = self.cli("report", "rfinject-out/", "--format", "json")
        self.assertEqual(json.loads(result.stdout), second)
        self.assertRegex(result.stderr, r"the newest of 2 runs, .*other\.py 4096")

    def test_the_folder_is_the_users_alone(self):
        before = os.umask(0)
        try:
            self.run_program(INFER)
        finally:
            os.umask(before)
        out = self.folder / "rfinject-out"
        link = out / "latest"
        self.assertTrue(link.is_symlink())
        self.assertRegex(os.readlink(link), r"^\d{8}-\d{6}-train-\d+$")
        self.assertEqual([stat.S_IMODE(path.stat().st_mode) for path in (out, link, *link.iterdir())],
                         [0o700, 0o700, 0o600])
        self.assertEqual(sorted(path.name for path in out.iterdir()), sorted([os.readlink(link), "latest"]))

    def test_a_link_that_was_planted_is_replaced_and_not_followed(self):
        (self.folder / "rfinject-out").mkdir()
        (self.folder / "victim").mkdir()
        (self.folder / "rfinject-out/latest").symlink_to(self.folder / "victim")
        self.run_program(INFER)
        self.assertEqual(list((self.folder / "victim").iterdir()), [])
        self.assertEqual(self.report()["steps"], 3)

    def test_a_named_folder_stays_that_folder(self):
        for _ in range(2):
            self.run_program(INFER, "-o", "mine/")
        self.assertEqual(len(list((self.folder / "mine").glob("*.rfx"))), 2)
        self.assertFalse((self.folder / "mine/latest").exists())
        self.assertFalse((self.folder / "rfinject-out").exists())
        self.assertEqual(self.report("mine")["steps"], 3)
        self.cli("merge", "mine", "-o", "both.rfx")
        self.assertEqual(self.report("both.rfx")["steps"], 6)

    def test_ranks_of_one_command_are_added_up(self):
        self.run_program(RANKS)
        report = self.report()
        self.assertEqual((report["process_count"], report["steps"]), (2, 4))
        rows = json.loads(self.cli("runs", "--format", "json").stdout)["runs"]
        self.assertEqual([(row["ranks"], row["steps"]) for row in rows], [(2, 2)])

    def test_other_commands_in_one_sum_are_said(self):
        self.run_program(INFER)
        self.run_program(INFER, arguments=["4"])
        self.cli("merge", "rfinject-out/", "-o", "all.rfx")
        said = [d["text"] for d in self.report("all.rfx")["diagnostics"] if d["id"] == "different-commands"]
        self.assertEqual(len(said), 1)
        self.assertIn("train.py 4", said[0])
        self.assertEqual([d for d in self.report()["diagnostics"] if d["id"] == "different-commands"], [])

    def test_a_program_that_does_not_train_leaves_the_latest_run_alone(self):
        self.run_program(INFER)
        latest = os.readlink(self.folder / "rfinject-out/latest")
        self.cli("true")
        self.assertEqual(os.readlink(self.folder / "rfinject-out/latest"), latest)
        names = sorted(path.name for path in (self.folder / "rfinject-out").iterdir())
        self.assertEqual(names, sorted([".started", "latest", latest]))

    def test_a_report_of_the_run_before_says_so(self):
        said = r"the run that began last, \d{8}-\d{6}-train-\d+, has left no trace; this is a run before it"
        self.run_program(INFER)
        self.assertNotRegex(self.cli("report").stderr, said)
        self.cli(programs.PYTHON, self.write("train.py", "raise SystemExit('no data')"), expect=1)
        self.assertRegex(self.cli("report").stderr, said)
        self.run_program(INFER)
        self.assertNotRegex(self.cli("report").stderr, said)

    def test_report_at_the_end_is_of_this_run(self):
        self.run_program(INFER)
        result = self.run_program(INFER, "--report", arguments=["8"])
        self.assertIn("3 steps", result.stderr)
        self.assertNotIn("6 steps", result.stderr)

    def test_a_killed_run_is_the_latest_too(self):
        self.run_program(INFER)
        self.cli("--estimate", programs.GPU, programs.PYTHON, self.write("killed.py", TRAIN + KILL),
                 expect=-signal.SIGKILL)
        self.assertRegex(os.readlink(self.folder / "rfinject-out/latest"), r"-killed-\d+$")
        self.assertGreater(self.report()["steps"], 0)


if __name__ == "__main__":
    unittest.main()
