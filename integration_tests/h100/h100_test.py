#!/usr/bin/env python3
"""Seven runs of a real H100, held against the time of each step by CUDA's events.

    h100_test.py --rfinject BIN [unittest arguments]

The runs are in ../shared/h100 beside the tree: runs/NAME.rfx, and overhead/NAME.json, whose steps_ms are the GPU's time of
each step. They were made by the library before it sampled bytes, which armed five steps and made them and their
neighbours thirty times longer.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import unittest

OPTIONS = argparse.Namespace()
SHARED = pathlib.Path(__file__).resolve().parents[2].parent / "shared" / "h100"
# Runs, and where their truth is.
TRUTH = {"gpt": "gpt", "r18-amp": "r18-amp", "r18-range": "r18-range", "r18-user": "r18-user",
         "resnet18-256-fp32": "resnet18-256-fp32-default-150", "resnet50-128-amp-default": "cost-default-2",
         "resnet50-128-amp-times": "cost-times-3"}
# Counting touched no step behind these.
TOUCHED = 40


class H100(unittest.TestCase):
    def setUp(self):
        if not SHARED.is_dir():
            self.skipTest("note: the runs of an H100 are not here")

    def cli(self, *words):
        result = subprocess.run([OPTIONS.rfinject, *map(str, words)], capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def runs(self):
        """Each run: its name, what the report says of it, and the truth of the steps that it measured, in ms."""
        for name, truth in TRUTH.items():
            report = json.loads(self.cli("report", SHARED / "runs" / f"{name}.rfx", "--format", "json"))
            steps_ms = json.loads((SHARED / "overhead" / f"{truth}.json").read_text(encoding="utf-8"))["steps_ms"]
            # The last step has no end by events.
            yield name, report, steps_ms[len(steps_ms) - (report["steps"] - 1):]

    def test_a_step_takes_what_cuda_events_say(self):
        for name, report, steps_ms in self.runs():
            with self.subTest(name):
                untouched = statistics.median(steps_ms[TOUCHED:])
                self.assertLess(abs(report["summary"]["step_wall_time_ns"] / 1e6 / untouched - 1), 0.01)
                self.assertEqual(report["summary"]["step_clock"], "host, undisturbed")

    def test_no_alarm(self):
        for name, report, _ in self.runs():
            with self.subTest(name):
                self.assertEqual(report["alarms"], [])

    def test_fp32_training_computes_nothing_in_half_precision(self):
        for name, report, _ in self.runs():
            if name in ("r18-range", "r18-user", "resnet18-256-fp32"):
                with self.subTest(name):
                    self.assertEqual(sum(row["flop_fp16"] or 0 for row in report["rows"]), 0)

    def test_a_kernel_is_bound_by_what_it_does(self):
        for name, report, _ in self.runs():
            with self.subTest(name):
                self.assertNotIn("launch", {row["bound"] for row in report["rows"]})

    def test_recordings_of_the_same_networks_raise_no_alarm(self):
        for path in sorted((SHARED / "recordings").glob("*.json.gz")):
            with self.subTest(path.name):
                self.assertEqual(json.loads(self.cli("report", path, "--format", "json"))["alarms"], [])

    def test_healthy_recordings_raise_no_alarm(self):
        # Its program asked for the counters of CUDA cores alone, and ran cuDNN's TF32 kernels.
        faults = {"a100_alexnet_counters.json.gz": {"R004"}}
        recordings = [path for folder in ("pytorch_profiler", "nsys") for path in sorted((SHARED.parent / "recordings" / folder).glob("*.gz"))]
        self.assertGreater(len(recordings), 20)
        for path in recordings:
            result = subprocess.run([OPTIONS.rfinject, "report", path, "--format", "json"], capture_output=True, text=True, check=False)
            if result.returncode:  # it has no work of a GPU that is known
                continue
            with self.subTest(path.name):
                report = json.loads(result.stdout)
                reports = report if isinstance(report, list) else [report]
                self.assertEqual({alarm["id"] for one in reports for alarm in one["alarms"]}, faults.get(path.name, set()))
                for row in (row for one in reports for row in one["rows"]):
                    self.assertLessEqual(row["attainable_share"] or 0, 1)

    def test_gpu_times_have_intervals(self):
        for name, _, steps_ms in self.runs():
            with self.subTest(name):
                text = " ".join(self.cli("report", SHARED / "runs" / f"{name}.rfx").split())
                usual = statistics.median(steps_ms[TOUCHED:])
                if max(steps_ms[TOUCHED:]) < 1.05 * usual:
                    self.assertNotIn("took much longer", text)
                self.assertRegex(text, r"GPU time is known to \+-[<0-9.]+ % \(95 %\), from \d+ sampled steps")
                for word in ("Two speeds", "Few steps", "Drifting"):
                    self.assertNotIn(word, text)

    def test_one_program_twice_is_the_same(self):
        # cli/report/compare/real_runs_test.cc has the rows.
        a, b = (SHARED / "runs" / f"resnet50-128-amp-{kind}.rfx" for kind in ("times", "default"))
        text = " ".join(self.cli("diff", a, b).split())
        self.assertIn("within the noise", text)
        self.assertNotIn(" yes ", text)
        self.assertIn("No difference", self.cli("diff", a, a))

    def test_parts_of_a_step_add_up(self):
        for name in TRUTH:
            with self.subTest(name):
                run = json.loads(self.cli("report", SHARED / "runs" / f"{name}.rfx", "--by", "wait", "--format", "json"))["runs"][0]
                row = run["rows"][0]
                parts = row["gpu_busy_mean_ns"] + row["launch_gap_mean_ns"] + row["data_idle_mean_ns"]
                self.assertAlmostEqual(parts / row["wall_time_mean_ns"], 1, places=9)
                for column, value in row.items():
                    if column.endswith("_share") and value is not None:
                        self.assertLessEqual(value, 1, column)

    def test_what_counting_cost_is_what_the_steps_took_longer(self):
        for name, report, steps_ms in self.runs():
            with self.subTest(name):
                summary, text = report["summary"], " ".join(self.cli("report", SHARED / "runs" / f"{name}.rfx").split())
                lost_ms = sum(steps_ms) - len(steps_ms) * statistics.median(steps_ms)
                if name == "resnet50-128-amp-times":  # nothing was counted: what is left is the program's own
                    self.assertEqual(summary["counting_ns"], 0)
                    self.assertLess(lost_ms, 0.01 * sum(steps_ms))
                    self.assertNotIn("Counting took", text)
                    continue
                self.assertLess(abs(summary["counting_ns"] / 1e6 / lost_ms - 1), 0.05)
                self.assertIn(f"in {summary['counting_steps']} steps; the other {report['steps'] - summary['counting_steps']} "
                              "ran as without it", text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rfinject", required=True)
    options, rest = parser.parse_known_args()
    OPTIONS.rfinject = options.rfinject
    program = unittest.main(argv=[sys.argv[0], *rest], exit=False)
    if program.result.wasSuccessful() and len(program.result.skipped) == program.result.testsRun:
        sys.exit(77)
    sys.exit(not program.result.wasSuccessful())


if __name__ == "__main__":
    main()
