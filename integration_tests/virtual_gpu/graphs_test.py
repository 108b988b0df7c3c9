"""Launches of CUDA graphs have the FLOP of a run without graphs, layer by layer.

    graphs_test.py [unittest arguments]
The environment, and where all is skipped, are those of compiled_test.py.
"""
import collections
import pathlib
import sys
import tempfile
import unittest

from compiled_test import Run, why_no_virtual_gpu, LIBRARIES

# Warming up, capturing, and the first steps are over.
ONLY_REPLAYS = ("--skip", "4")
PROGRAM = pathlib.Path(__file__).resolve().parents[1] / "hardware_path" / "programs" / "graphed.py"
# Steps, and steps before anything is captured: one tells that the model trains.
STEPS = {"eager": ("8", "0"), "two": ("7", "1"), "step": ("4", "4")}


class Graphs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.eager = cls.flop_of("eager")

    @classmethod
    def flop_of(cls, how):
        """FLOP of the four last steps, by model, phase and layer."""
        with tempfile.TemporaryDirectory(prefix="rfinject-inductor-") as cache:
            run = Run(PROGRAM, *STEPS[how], how, cache=cache, options=ONLY_REPLAYS)
        assert run.code == 0, run.err
        assert run.report["steps"] == 4, run.report["steps"]
        flop = collections.Counter()
        for row in run.rows:
            flop[row["model"], row["phase"], row["layer"]] += row["model_flop"]
        return {place: count for place, count in flop.items() if count}

    def test_two_graphs_that_share_kernels(self):
        self.assertEqual(self.flop_of("two"), self.eager)

    def test_a_graph_that_holds_the_optimizer(self):
        self.assertEqual(self.flop_of("step"), self.eager)

    def test_the_blocks_have_flop_of_their_own(self):
        for phase in ("forward", "backward"):
            for layer in ("first.up", "first.down", "second.up", "second.down"):
                self.assertGreater(self.eager["Net", phase, layer], 0)
        self.assertTrue(any(phase == "optimizer" for _, phase, _ in self.eager), self.eager)


if __name__ == "__main__":
    if reason := why_no_virtual_gpu(LIBRARIES):
        print(f"note: skipped: {reason}")
        sys.exit(77)
    unittest.main()
