"""What a step takes by the clock on a virtual GPU: the longer of host and GPU, whose host that is, and what waits for it.

    clock_test.py [unittest arguments]
RFINJECT names the command, RFINJECT_PYTHON the interpreter (default: the one that runs this file). Without a torch that is
a CUDA build, or where NVIDIA's driver is, all is skipped.
"""
import json
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from cuda_torch import why_no_virtual_gpu  # noqa: E402
from program_run import RFINJECT, Run  # noqa: E402

GAP_NS = 1200  # between two kernels (kKernelGapNs)


class Clock(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.runs = {}
        for which in ("ahead", "waits"):
            cls.runs[which] = Run.in_child("chain.py", "8", *["waits"][which == "ahead":], options=("--skip", "2"))
            cls.addClassCleanup(cls.runs[which].close)
            assert cls.runs[which].code == 0, cls.runs[which].err

    def report(self, which, *options):
        said = subprocess.run([RFINJECT, "report", self.runs[which].folder, "--by", "phase", "--format", "json", *options],
                              check=True, capture_output=True, text=True)
        report = json.loads(said.stdout)
        summary, rows = report["summary"], report["rows"]
        launches = sum(row["launches"] for row in rows) / report["steps"]
        return summary, rows, launches, summary["step_gpu_time_ns"] + launches * GAP_NS

    def test_a_host_that_is_given(self):
        for which in ("ahead", "waits"):
            summary, rows, launches, gpu_ns = self.report(which, "--host-us", "500")
            self.assertAlmostEqual(summary["step_host_time_ns"], launches * 500e3, delta=1)
            # The last kernel comes on top where the host waits for it.
            self.assertGreaterEqual(summary["step_time_ns"], launches * 500e3 - 1)
            self.assertLess(summary["step_time_ns"], launches * 500e3 + 0.1e6)
            self.assertEqual((summary["step_bound"], summary["step_host_of"]), ("launch", "given"))
            self.assertAlmostEqual(summary["step_gpu_waits_share"], 1 - gpu_ns / summary["step_time_ns"], delta=1e-3)
            self.assertEqual({row["bound"] for row in rows if row["flop"]}, {"launch"})
            summary, rows, _, gpu_ns = self.report(which, "--host-us", "0.001")
            self.assertAlmostEqual(summary["step_time_ns"] / gpu_ns, 1, delta=1e-3)
            self.assertEqual(summary["step_bound"], "GPU")
            self.assertNotIn("launch", {row["bound"] for row in rows})

    def test_else_it_is_this_machine_and_that_is_said(self):
        for which in ("ahead", "waits"):
            summary, rows, launches, gpu_ns = self.report(which)
            self.assertEqual(summary["step_host_of"], "this machine")
            # Python and PyTorch take this long for a launch at least, on any machine.
            self.assertGreater(summary["step_host_time_ns"], launches * 1000)
            self.assertGreaterEqual(summary["step_time_ns"], max(gpu_ns, summary["step_host_time_ns"]) - 1)
            self.assertTrue(any("With the host that it ran on here" in line for line in summary["headline"]), summary)
            # What is said of rows, and images a second, is the same on every machine.
            self.assertEqual((summary["launch_interval_of"], summary["launch_interval_ns"]), ("floor", 10000))
        said = subprocess.run([RFINJECT, "report", self.runs["ahead"].folder, "--by", "run", "--format", "json"], check=True,
                              capture_output=True, text=True)
        run, = json.loads(said.stdout)["runs"]
        self.assertEqual((run["host_time_of"], run["samples_per_s_over"] or "gpu_time"), ("this machine", "gpu_time"))

    def test_launch_floor(self):
        self.assertEqual({row["bound"] for row in self.report("ahead", "--launch-floor", "100")[1] if row["flop"]}, {"launch"})
        self.assertNotIn("launch", {row["bound"] for row in self.report("ahead", "--launch-floor", "1")[1]})


if __name__ == "__main__":
    if reason := why_no_virtual_gpu(pathlib.Path(RFINJECT).resolve().parent.parent / "lib" / "virtual_gpu"):
        print(f"note: skipped: {reason}")
        sys.exit(77)
    unittest.main()
