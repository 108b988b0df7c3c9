#!/usr/bin/env python3
"""fit_test.py --tool build/release/tools/estimate_rows

gpus/calibration.csv, calibration/held_out.csv.gz and held_out_networks.csv.gz are what calibration/fit makes from
calibration/data: the same parameters with the same provenance, and values and held-out times that differ by less than
another processor's rounding can move the search. Of the fits without rows one of each kind is made, with RFX_FIT=all each.
Of the networks that no scale has seen as many lie in their intervals as an 80 % interval should hold, and the intervals are
narrow enough to say something.
"""
import argparse
import csv
import gzip
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "calibration"))
from intervals import SHARED, SHARED_CONVOLUTION_FP32  # noqa: E402
NEAR = 0.01
HELD_OUT = ("held_out.csv.gz", "held_out_networks.csv.gz")
TOOL = None


def parameters(path):
    with open(path, encoding="utf-8") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return {(row["gpu"], row["family"], row["parameter"]): row for row in rows}


def held_out(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [[float(value or 0) for value in row] for row in list(csv.reader(file))[1:]]


class FitTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.made = os.path.join(cls.folder.name, "calibration.csv")
        cls.unseen, cls.networks = (os.path.join(cls.folder.name, name) for name in HELD_OUT)
        refit = [] if os.environ.get("RFX_FIT") == "all" else ["--refit", "1"]
        subprocess.run([sys.executable, ROOT / "calibration" / "fit", "--tool", TOOL, "-o", cls.made, *refit,
                        "--held-out", cls.unseen, "--held-out-networks", cls.networks], check=True, stderr=subprocess.DEVNULL)

    def test_the_parameters_are_what_the_fit_makes(self):
        made, shipped = parameters(self.made), parameters(ROOT / "gpus" / "calibration.csv")
        self.assertEqual(sorted(made), sorted(shipped))
        for key, row in made.items():
            self.assertEqual({name: row[name] for name in ("unit", "provenance")},
                             {name: shipped[key][name] for name in ("unit", "provenance")}, key)
            self.assertAlmostEqual(float(row["value"]), float(shipped[key]["value"]),
                                   delta=NEAR * abs(float(row["value"])), msg=key)

    def test_the_held_out_times_are_what_the_fit_makes(self):
        for path, name in zip((self.unseen, self.networks), HELD_OUT):
            made, shipped = held_out(path), held_out(ROOT / "calibration" / name)
            self.assertEqual(len(made), len(shipped))
            far = [i for i, (a, b) in enumerate(zip(made, shipped))
                   if any(abs(x - y) > NEAR * max(x, y) for x, y in zip(a, b))]
            self.assertEqual(far, [], name)

    def test_intervals_of_steps_hold_as_many_networks_as_they_say(self):
        text = subprocess.run([ROOT / "bench" / "step_intervals"], check=True, capture_output=True, text=True,
                              env={**os.environ, "RFINJECT_ESTIMATE_ROWS": TOOL}).stdout
        inside, networks = map(int, re.search("([0-9]+) of ([0-9]+) networks inside", text).groups())
        self.assertGreaterEqual(networks, 25)
        self.assertTrue(0.7 <= inside / networks <= 0.9, text)
        low, high = map(float, re.search("interval: ([0-9.]+) to ([0-9.]+) of the expected time in the median", text).groups())
        self.assertTrue(0.75 <= low and high <= 1.35, text)
        self.assertEqual(re.findall("beyond 0.75 to 1.35: (.*), ", text), [], text)
        # What the command takes for the part that a group's errors have in common is what the networks say.
        parts = [float(part) for part in re.findall("^shared part, .*: ([0-9.]+) of", text, re.MULTILINE)]
        for part, taken in zip(parts, (SHARED, SHARED_CONVOLUTION_FP32), strict=True):
            self.assertAlmostEqual(part, taken, delta=0.005, msg=text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    args, rest = parser.parse_known_args()
    TOOL = args.tool
    unittest.main(argv=[sys.argv[0]] + rest)
