#!/usr/bin/env python3
"""fit_test.py --tool build/release/tools/estimate_rows

gpus/calibration.csv and calibration/held_out.csv.gz are what calibration/fit makes from calibration/data: the same
parameters with the same provenance, and values and held-out times that differ by less than another processor's
rounding can move the search.
"""
import argparse
import csv
import gzip
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NEAR = 0.01
TOOL = None


def parameters(path):
    with open(path, encoding="utf-8") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return {(row["gpu"], row["family"], row["parameter"]): row for row in rows}


def held_out(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [[float(value) for value in row] for row in list(csv.reader(file))[1:]]


class FitTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.made = os.path.join(cls.folder.name, "calibration.csv")
        cls.unseen = os.path.join(cls.folder.name, "held_out.csv.gz")
        subprocess.run([sys.executable, ROOT / "calibration" / "fit", "--tool", TOOL, "-o", cls.made,
                        "--held-out", cls.unseen], check=True, stderr=subprocess.DEVNULL)

    def test_the_parameters_are_what_the_fit_makes(self):
        made, shipped = parameters(self.made), parameters(ROOT / "gpus" / "calibration.csv")
        self.assertEqual(sorted(made), sorted(shipped))
        for key, row in made.items():
            self.assertEqual({name: row[name] for name in ("unit", "provenance")},
                             {name: shipped[key][name] for name in ("unit", "provenance")}, key)
            self.assertAlmostEqual(float(row["value"]), float(shipped[key]["value"]),
                                   delta=NEAR * abs(float(row["value"])), msg=key)

    def test_the_held_out_times_are_what_the_fit_makes(self):
        made, shipped = held_out(self.unseen), held_out(ROOT / "calibration" / "held_out.csv.gz")
        self.assertEqual(len(made), len(shipped))
        far = [i for i, (a, b) in enumerate(zip(made, shipped))
               if any(abs(x - y) > NEAR * max(x, y) for x, y in zip(a, b))]
        self.assertEqual(far, [])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    args, rest = parser.parse_known_args()
    TOOL = args.tool
    unittest.main(argv=[sys.argv[0]] + rest)
