#!/usr/bin/env python3
"""The tutorial's commands, typed in its order, print what it shows.

    tutorial_test.py RFINJECT PYTHON [unittest's arguments]
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FAILS = 4  # what a gate that does not hold exits with


def plain(line):
    """A line without what differs from one torch to the next: numbers, and how wide columns are."""
    return " ".join(re.sub(r"\d[\d.,]*", "#", line).split())


class Tutorial(unittest.TestCase):
    def test_each_exercise_ends_as_it_says(self):
        with tempfile.TemporaryDirectory(prefix="rfinject-tutorial-") as folder:
            shutil.copy(ROOT / "examples" / "tutorial.py", folder)
            shown = [line[4:] for line in (ROOT / "docs/use/TUTORIAL.md").read_text().splitlines() if line.startswith("    ")]
            commands = [line for line in shown if line.startswith("rfinject ")]
            self.assertEqual(len(commands), 7)
            printed = ""
            for command in commands:
                words = [RFINJECT, *shlex.split(command)[1:]]
                words = [PYTHON if word == "python" else word for word in words]
                done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False,
                                      env={**os.environ, "COLUMNS": "80"})
                self.assertEqual(done.returncode, FAILS if "--fail-if" in command else 0, command + "\n" + done.stderr)
                printed += done.stdout
            lines = {plain(line) for line in printed.splitlines()}
            for line in shown:
                if line not in commands:
                    self.assertIn(plain(line), lines, line)
            self.assertGreater(self.share_of_head(folder, "before/"), 0.8)
            self.assertLess(self.share_of_head(folder, "after/"), 0.5)

    def share_of_head(self, folder, trace):
        report = json.loads(subprocess.run([RFINJECT, "report", trace, "--by", "layer", "--format", "json"], cwd=folder, check=True,
                                           capture_output=True, text=True).stdout)
        return next(row["time_share"] for row in report["rows"] if row["layer"] == "head")


if __name__ == "__main__":
    RFINJECT, PYTHON = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
