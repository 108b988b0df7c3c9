"""With --values all a program computes on the virtual GPU what it computes on the CPU, and does there what it does on the CPU.

    values_test.py [unittest arguments]
The environment, and where all is skipped, are those of virtual_gpu_test.py.
"""
import os
import subprocess
import sys
import unittest

from program_run import PROGRAMS, PYTHON, Run
from virtual_gpu_test import FORKED_RANKS, LIBRARIES, why_no_virtual_gpu

# How far a loss may be from the CPU's, as a part of it. Operators of halves differ by device in what they round.
DEFAULT_TOLERANCE = 1e-4
TOLERANCES = {"gpt_flash": 3e-3, "halves": 1e-2}
NAMES = ("convolutions", "dropout", "gpt_flash", "gpt_efficient", "gpt_masked", "gpt_math", "gpt_dropped", "norms", "recurrent", "halves",
         "unet", "signals")
# These run the same operators whatever the values are.
STRAIGHT = ("gpt_flash", "gpt_efficient", "norms", "recurrent")


class Values(unittest.TestCase):
    def run_program(self, *arguments, how=Run, **more):
        run = how(*arguments, **more)
        self.addCleanup(run.close)
        self.assertEqual(run.code, 0, run.out + run.err)
        return run

    def test_training_is_the_cpus(self):
        """Losses are the CPU's, and so are the branches that depend on values; and nothing is left out."""
        # One thread: two that wait for each other on busy cores take half as much again.
        on_cpu = subprocess.run([PYTHON, "-B", PROGRAMS / "all_values.py", "cpu", *NAMES], check=True, capture_output=True, text=True,
                                timeout=600, env={**os.environ, "OMP_NUM_THREADS": "1"}).stdout.splitlines()
        run = self.run_program("all_values.py", "cuda", *NAMES, how=Run.in_child, options=("--values", "all"))
        on_gpu = run.out.splitlines()
        self.assertEqual({line.split()[0] for line in on_cpu}, set(NAMES))
        self.assertEqual(len(on_gpu), len(on_cpu), run.out)
        for expected, seen in zip(on_cpu, on_gpu):
            name, what, value = expected.split(" ", 2)
            with self.subTest(name=name, what=what):
                if what == "did":
                    self.assertEqual(seen, expected)
                    continue
                self.assertEqual(seen.split()[:2], [name, what])
                loss = float(value)
                self.assertAlmostEqual(float(seen.split()[2]), loss,
                                       delta=abs(loss) * TOLERANCES.get(name, DEFAULT_TOLERANCE))
        self.assertNotIn("not computed", run.err)
        self.assertNotIn("reads results", run.err)

    def test_the_trace_is_that_of_a_run_that_computes_nothing(self):
        rows = []
        for values in ("all", "none"):
            run = self.run_program("all_values.py", "cuda", *STRAIGHT, how=Run.in_child, options=("--values", values))
            rows.append({(row["model"], row["layer"], row["phase"], row["op"], row["signature"]):
                         (row["launches"], row["model_flop"], row["kernel_launches"], row["kernels"])
                         for report in run.reports("kernel") for row in report["rows"]})
        self.assertGreater(len(rows[0]), 200)
        self.assertEqual(rows[0], rows[1])

    def test_what_is_not_computed_is_said_once(self):
        run = self.run_program("not_computed.py", how=Run.in_child, options=("--values", "all"))
        self.assertNotIn("False", run.out)
        self.assertEqual(run.err.count("aten::_cudnn_rnn is not computed"), 1, run.err)
        self.assertEqual(run.err.count("kernels that no operator of PyTorch's has launched are not computed"), 1, run.err)
        self.assertEqual(run.err.count("reads results"), 2, run.err)

    def test_ranks_add_up_large_tensors(self):
        run = self.run_program(FORKED_RANKS, 2, PROGRAMS / "large_collective.py", how=Run.in_child,
                               options=("--values", "all", "--virtual-gpus", "2"))
        self.assertEqual(run.out.count("reduced True"), 2, run.out)
        self.assertNotIn("not computed", run.err)

    def test_memory_that_the_host_has_not_is_refused(self):
        without = self.run_program("host_memory.py", gpu="H200-SXM-141GB")
        if "too much" in without.out:
            self.skipTest("this host has as much memory as the board")
        self.assertIn("got True", without.out)
        run = self.run_program("host_memory.py", gpu="H200-SXM-141GB", options=("--values", "all"))
        self.assertIn("refused", run.out)
        self.assertIn("goes on 1000.0", run.out)
        self.assertIn("the host has no more", run.err)


if __name__ == "__main__":
    reason = why_no_virtual_gpu(LIBRARIES)
    if reason is not None:
        print(f"note: skipped: {reason}")
        sys.exit(77)
    unittest.main()
