"""What operators count on the virtual GPU, worked out by hand, and what of a program is no work of the GPU.

    rules_test.py [unittest arguments]
As virtual_gpu_test.py, whose variables it takes.
"""
import collections
import re
import sys
import unittest

from program_run import Run
from virtual_gpu_test import LIBRARIES, why_no_virtual_gpu


class Rules(unittest.TestCase):
    def run_program(self, *arguments, how=Run.in_child, **more):
        run = how(*arguments, **more)
        self.addCleanup(run.close)
        self.assertEqual(run.code, 0, run.out + run.err)
        return run

    def test_operators(self):
        if torch_version() < (2, 8):
            self.skipTest("note: operators of newer torches")
        run = self.run_program("operators.py")
        rows = collections.defaultdict(lambda: collections.Counter())
        for row in run.report("kernel")["rows"]:
            rows[row["layer"], row["phase"], row["op"].split("::")[1]].update(
                {name: value for name, value in row.items() if name.startswith(("flop", "model_flop", "compulsory")) and value})
        forward = {(layer, op): row for (layer, phase, op), row in rows.items() if phase == "forward"}
        self.assertEqual(forward["padded", "_scaled_dot_product_flash_attention"]["flop_bf16_tc"], 12_960)
        # 2 heads, 64 * 65 / 2 of 64 * 64 pairs, 8 elements.
        causal = forward["causal", "_scaled_dot_product_flash_attention"]
        self.assertEqual(causal["flop_bf16_tc"], 2 * 64 * 65 // 2 * 4 * 8)
        self.assertEqual(causal["model_flop"], 2 * 64 * 64 * (4 * 8 + 4))
        jagged = 4 * 8 * 64 * (128 ** 2 + 512 ** 2 + 1024 ** 2)
        self.assertEqual(forward["jagged", "_flash_attention_forward"]["flop_bf16_tc"], jagged)
        backward = next(row for (_, phase, op), row in rows.items() if op == "_flash_attention_backward")
        self.assertEqual(backward["flop_bf16_tc"], jagged // 2 * 5)
        self.assertEqual(forward["fft", "_fft_r2c"]["flop"], 3_932_160)
        self.assertEqual(forward["fft", "_fft_r2c"]["compulsory_bytes"], 1_671_168)
        self.assertEqual(forward["direct", "_cdist_forward"]["flop"], 805_306_368)
        self.assertEqual(forward["depthwise", "convolution"]["flop_fp32"], 2 * 2 * 32 * 64 * 9)
        self.assertEqual(forward["bag", "_embedding_bag"]["flop"], 8 * 4 * 16)
        self.assertEqual(forward["integers", "_int_mm"]["flop"], 2 * 64 ** 3)
        # What hands its work on has no row; what launches kernels has one, and it is said that no rule knows it.
        self.assertEqual([op for layer, op in forward if layer == "custom"], ["add"])
        for layer, op in (("pooled", "roi_align"), ("kept", "nms")):
            self.assertIn((layer, op), forward)
            self.assertRegex(run.err, "no FLOP rule for .*torchvision::" + op)
        self.assertFalse([key for key in rows if "nested" in key[2]], "views")

    def test_tries_that_fail_are_no_steps(self):
        run = self.run_program("retries.py")
        batch = int(re.search("batch ([0-9]+)", run.out)[1])
        report = run.report("phase")
        self.assertEqual(report["steps"], 2)
        flop = {row["phase"]: row["model_flop"] for row in report["rows"]}
        self.assertEqual(flop["forward"], 2 * 2 * 2 * batch * 1024 * 1024)

    def test_what_the_host_computes_costs_nothing(self):
        report = self.run_program("on_both.py").report("layer")
        self.assertEqual({row["layer"] for row in report["rows"] if row["model_flop"]}, {"gpu"})

    def test_a_program_without_parameters_is_told_why_nothing_was_written(self):
        run = self.run_program("no_parameters.py", how=Run)
        self.assertEqual(run.out, "result\n")
        self.assertRegex(run.err, r"rfinject: no trace: .* have no parameters")


def torch_version():
    import torch
    return tuple(int(part) for part in torch.__version__.split(".")[:2])


if __name__ == "__main__":
    if reason := why_no_virtual_gpu(LIBRARIES):
        print(f"note: skipped: {reason}")
        sys.exit(77)
    unittest.main()
