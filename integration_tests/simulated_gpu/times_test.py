#!/usr/bin/env python3
"""What a report says of time, held against what the simulated GPU did: the queue of launches, the host that runs ahead of
the GPU or behind it, and waits.

    times_test.py --counting BIN --rfinject BIN [unittest arguments]

bench/counting.cc runs the program, writes what each step took beside the trace, and measures by the shipped collector.
"""
import argparse
import collections
import csv
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

OPTIONS = argparse.Namespace()
STEPS = 300
TIMES_ONLY = ("--overhead", 0)
# Behind a step in which something was counted the queue fills again; a program's first steps fill it.
FILLING, FIRST = 10, 20


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


class Run:
    """A program that was run: what happened, in the steps that counting does not touch, and what reports say of it."""

    def __init__(self, *words):
        self.folder = tempfile.TemporaryDirectory(prefix="rfinject-times-")
        path = self.folder.name
        subprocess.run([OPTIONS.counting, "--steps", str(STEPS), "--trace", path, *map(str, words)], check=True,
                       stdout=subprocess.DEVNULL)
        steps = [{name: int(value) for name, value in row.items()} for row in rows_of(pathlib.Path(path, "steps.csv"))]
        counted = [step["step"] for step in steps if step["counted"]]
        self.steps = [step for step in steps if step["step"] >= FIRST
                      and not any(0 <= step["step"] - one < FILLING for one in counted)]
        kept = {step["step"] for step in self.steps}
        self.idle = collections.Counter()
        for row in rows_of(pathlib.Path(path, "idle.csv")):
            if int(row["step"]) in kept:
                self.idle[row["layer"]] += int(row["idle_ns"])
        self.waits = json.loads(self.report("--by", "wait", "--format", "json"))["runs"][0]
        self.text = " ".join(self.report().split())
        self.folder.cleanup()

    def report(self, *words):
        return subprocess.run([OPTIONS.rfinject, "report", self.folder.name, *words], check=True, capture_output=True,
                              text=True).stdout

    def sum(self, name):
        return sum(step[name] for step in self.steps)

    def truth(self):
        """Shares of a step, as `report --by wait` names them."""
        period, host = self.sum("period_ns"), self.sum("host_ns")
        busy, data_idle = self.sum("busy_ns"), self.sum("data_idle_ns")
        return {"gpu_busy_share": busy / period, "launch_gap_share": (period - busy - data_idle) / period,
                "data_idle_share": data_idle / period, "gpu_wait_share": self.sum("gpu_wait_ns") / host,
                "data_wait_share": self.sum("data_wait_ns") / host}


class Times(unittest.TestCase):
    def check(self, run, waits_for):
        self.assertGreater(len(run.steps), STEPS / 4)
        said, truth = run.waits["rows"][0], run.truth()
        if not run.sum("data_wait_ns"):
            truth = {name: value for name, value in truth.items() if not name.startswith("data")}
        step_ns = run.sum("period_ns") / len(run.steps)
        self.assertLess(abs(said["wall_time_mean_ns"] / step_ns - 1), 0.02, "a step")
        for name, value in truth.items():
            self.assertLess(abs(said[name] - value), 0.02, f"{name}: {said[name]:.4f} for {value:.4f}; {said}")
        self.assertEqual(run.waits["gpu_waits_for"], waits_for)
        parts = said["gpu_busy_mean_ns"] + said["launch_gap_mean_ns"] + said["data_idle_mean_ns"]
        self.assertAlmostEqual(parts / said["wall_time_mean_ns"], 1, places=9)
        self.check_idle(run, step_ns)

    def check_idle(self, run, step_ns):
        """The layers before whose kernels the GPU is idle, which together are the idle time."""
        said = collections.Counter()
        for row in run.waits["idle_before"]:
            said[row["layer"]] += row["idle_ns"]
        row = run.waits["rows"][0]
        if run.waits["idle_before"]:
            self.assertAlmostEqual(sum(said.values()) / (row["wall_time_mean_ns"] - row["gpu_busy_mean_ns"]), 1, places=6)
        for layer, ns in run.idle.items():
            truth = ns / len(run.steps)
            self.assertLess(abs(said[layer] - truth), 0.02 * step_ns, layer)

    def test_a_program_that_the_gpu_holds_up(self):
        run = Run("--step-ms", 14.5, *TIMES_ONLY)
        self.assertGreater(run.truth()["gpu_wait_share"], 0.25)
        self.check(run, "nothing")
        self.assertRegex(run.text, r"GPU time is known to \+-[<0-9.]+ % \(95 %\)")
        for word in ("Two speeds", "Drifting", "Few steps"):
            self.assertNotIn(word, run.text)

    def test_a_program_that_the_host_holds_up(self):
        run = Run("--step-ms", 5, *TIMES_ONLY)
        self.assertGreater(run.truth()["launch_gap_share"], 0.3)
        self.check(run, "launches")

    def test_a_program_that_waits_for_data(self):
        run = Run("--step-ms", 8, "--data-ms", 8, *TIMES_ONLY)
        self.assertGreater(run.truth()["data_idle_share"], 0.3)
        self.check(run, "data")

    # Each step's loss is read, so that the host is never ahead: even steps are the host's, odd ones the GPU's.
    def test_a_program_that_both_hold_up_in_turn(self):
        run = Run("--step-ms", 4, "--odd", 5, "--reads-loss", 1, *TIMES_ONLY)
        truth = run.truth()
        self.assertGreater(truth["launch_gap_share"], 0.1)
        self.assertGreater(truth["gpu_wait_share"], 0.3)
        self.check(run, "launches, in part of the steps")

    def test_a_clock_that_drops_half_way(self):
        run = Run("--step-ms", 14.5, "--second-half", 1.1, *TIMES_ONLY)
        self.assertRegex(run.text, "Two speeds|Drifting")

    def test_counting_is_in_no_time(self):
        run = Run("--step-ms", 14.5, "--steps", 2 * STEPS)  # ranges have their turn in some 200 of them
        self.assertIn("Counting took", run.text)
        self.check(run, "nothing")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--counting", required=True)
    parser.add_argument("--rfinject", required=True)
    rest = parser.parse_known_args(namespace=OPTIONS)[1]
    probe = subprocess.run([OPTIONS.counting, "--steps", "1", "--launches", "1", "--step-ms", "1"], check=False,
                           stdout=subprocess.DEVNULL)
    if probe.returncode == 77:
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
