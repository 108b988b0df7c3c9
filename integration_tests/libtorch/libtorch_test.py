#!/usr/bin/env python3
"""Tests C++ programs on libtorch under the finished library: which layer, phase and step their operators are in.

    RFINJECT_LIBRARY=build/release/lib/librfinject.so LIBTORCH_BUILD=/tmp/libtorch python3 libtorch_test.py
"""

import os
import signal
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import rfx_trace  # noqa: E402

try:
    from programs import ENVIRONMENT, build, flags_of_torch  # noqa: E402
except ImportError:
    print("note: no torch in this interpreter: its C++ programs are skipped")
    sys.exit(77)

STEPS = 5


def run(name, *arguments, by="LD_PRELOAD", ends_with=0, **environment):
    """Runs the program under the library: its one trace and what it wrote to stderr."""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(ENVIRONMENT, **{by: os.environ["RFINJECT_LIBRARY"]}, RFINJECT_OUTPUT=folder + "/",
                           RFINJECT_ESTIMATE="V100-SXM2-16GB", **environment)
        result = subprocess.run([build(name), *arguments], env=environment, capture_output=True, text=True,
                                timeout=250)
        traces = rfx_trace.read_traces(folder)
    if result.returncode != ends_with or len(traces) != 1:
        raise AssertionError("%d, %d traces: %s" % (result.returncode, len(traces), result.stderr))
    return traces[0], result.stderr


class LibtorchTest(unittest.TestCase):
    def check(self, trace, model, expected_paths):
        self.assertEqual(trace.tier, "E")
        self.assertIn(model, {name["class_name"] for name in trace.models.values()}, "its forward was inlined?")
        rows = [row for row in trace.rows() if row["phase"] in ("forward", "backward")]
        orphans = [row for row in rows if row["layer"] is None]
        self.assertLessEqual(len(orphans), 0.05 * len(rows), [row["kernel"] for row in orphans])
        self.assertGreater(len(rows), 50)
        # What the compiler inlines into its caller is not on the stack: an outer part of the path may be missing.
        for phase in ("forward", "backward"):
            paths = {row["layer"] for row in rows if row["phase"] == phase}
            for expected in expected_paths:
                self.assertTrue(any(path is not None and ("." + path).endswith("." + expected) for path in paths),
                                (phase, expected, paths))
        phases = {row["phase"] for row in trace.rows()}
        self.assertIn("optimizer", phases)
        self.assertEqual(len([step for step in trace.steps if step.get("measured")]), STEPS)
        self.assertEqual(trace.end["reason"], "exit")
        # Keys in no layer have a native stack, with names; those in a layer have none.
        outside = [row for row in trace.rows() if row["layer"] is None]
        with_stack = [row for row in outside if row["stack"]]
        self.assertGreaterEqual(len(with_stack), 0.95 * len(outside))
        for row in with_stack:
            if row["phase"] != "backward":
                self.assertIn("main", row["stack"])
        self.assertTrue(any("torch::optim::" in name for row in with_stack for name in row["stack"]))
        self.assertFalse([row for row in trace.rows() if row["layer"] is not None and row["stack"]])

    def test_resnet(self):
        trace, _ = run("resnet", str(STEPS))
        self.check(trace, "ResNet",
                   ["Conv2d", "BatchNorm2d", "Linear", "Sequential.BasicBlock", "Sequential.BasicBlock.Conv2d",
                    "Sequential.BasicBlock.Conv2d#2", "Sequential#2.BasicBlock.Sequential.Conv2d",
                    "Sequential#3.BasicBlock#2.BatchNorm2d#2"])
        # There are exactly the launches of the steps in every layer: 16 convolutions, forward and backward.
        convolutions = [row for row in trace.rows() if row["kernel"] == "aten::convolution"]
        self.assertEqual(sum(row["launches"] for row in convolutions), 15 * STEPS)
        self.assertEqual(len({row["layer"] for row in convolutions}), 15)

    def test_opened_by_the_cuda_driver(self):
        trace, _ = run("resnet", str(STEPS), by="CUDA_INJECTION64_PATH")
        self.check(trace, "ResNet", ["Conv2d", "Linear", "Sequential#3.BasicBlock#2.BatchNorm2d#2"])

    def test_program_that_is_ended_after_the_last_step(self):
        trace, _ = run("resnet", "100000", ends_with=-signal.SIGTERM, RFINJECT_STEPS=str(STEPS), RFINJECT_KILL="1")
        self.check(trace, "ResNet", ["Conv2d"])

    def test_validation_is_part_of_no_step(self):
        batches = 3
        trace, _ = run("resnet", str(STEPS), str(batches))
        alone, _ = run("resnet", str(STEPS))
        validated = batches * (STEPS // 2)
        self.assertEqual(len([step for step in trace.steps if step.get("measured")]), STEPS)
        self.assertEqual(trace.eval_batches, validated)
        launches = {}
        for name, one in (("with", trace), ("without", alone)):
            for row in one.rows():
                if row["kernel"] == "aten::convolution":
                    key = (name, row["phase"])
                    launches[key] = launches.get(key, 0) + row["launches"]
        self.assertEqual(launches, {("with", "forward"): 15 * STEPS, ("without", "forward"): 15 * STEPS,
                                    ("with", "eval"): 15 * validated})
        # The loss outside of the model is validated with it.
        self.assertIn("eval", {row["phase"] for row in trace.rows() if "nll_loss" in row["kernel"]})

    def test_transformer(self):
        trace, _ = run("transformer", str(STEPS))
        self.check(trace, "LanguageModel",
                   ["Embedding", "Attention", "Attention.Linear#2", "Sequential.GELU",
                    "TransformerEncoder.TransformerEncoderLayer#2.MultiheadAttention", "Linear"])

    def test_program_goes_on_as_it_would(self):
        plain = subprocess.run([build("resnet"), "3"], env=ENVIRONMENT, capture_output=True, text=True, timeout=250)
        environment = dict(ENVIRONMENT, LD_PRELOAD=os.environ["RFINJECT_LIBRARY"], RFINJECT_DISABLE="1")
        disabled = subprocess.run([build("resnet"), "3"], env=environment, capture_output=True, text=True, timeout=250)
        self.assertEqual((plain.returncode, plain.stdout), (disabled.returncode, disabled.stdout))


if __name__ == "__main__":
    if flags_of_torch() is None:
        print("note: no C++ headers of this torch here: its C++ programs are skipped")
        sys.exit(77)
    if not os.environ.get("RFINJECT_WITH_LIBUNWIND", "yes"):
        print("note: built without libunwind: C++ programs have no layers")
        sys.exit(77)
    unittest.main()
