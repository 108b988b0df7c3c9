"""Programs with factorisations of matrices and with sparse ones, on the virtual GPU: FLOP by a count of their own, and the
values that the CPU has.

    matrices_test.py [unittest arguments]
As virtual_gpu_test.py, whose variables it takes.
"""
import collections
import re
import sys
import unittest

from program_run import Run
from virtual_gpu_test import LIBRARIES, why_no_virtual_gpu


class Matrices(unittest.TestCase):
    def run_program(self, *arguments, how=Run.in_child, **more):
        run = how(*arguments, **more)
        self.addCleanup(run.close)
        self.assertEqual(run.code, 0, run.out + run.err)
        return run

    def test_factorisations_in_a_loss(self):
        # What is freed is overwritten, so that a result that nobody owns is seen.
        run = self.run_program("linear_algebra.py", n := 32, how=Run, environment={"MALLOC_PERTURB_": "85"})
        self.assertIn("lu True", run.out)
        self.assertIn("least squares True True", run.out)
        self.assertIn("eig torch.complex64 (4,) (4, 4) (4,)", run.out)
        for value in re.search(r"^values (.*)$", run.out, re.MULTILINE)[1].split():
            self.assertAlmostEqual(float(value), n, delta=1e-3)
        flop = {(row["phase"], row["op"]): row["model_flop"] / 3 for row in run.report("op")["rows"]}
        for op, cubes in (("linalg_cholesky_ex", 1 / 3), ("linalg_lu", 2 / 3), ("_linalg_eigh", 9), ("_linalg_svd", 22)):
            self.assertAlmostEqual(flop["forward", "aten::" + op], cubes * n ** 3, delta=1)

    def test_products_with_sparse_matrices(self):
        nodes, edges, width = 40, 160, 8
        runs = [self.run_program("sparse.py", device, nodes, edges, width) for device in ("cuda", "cpu")]
        self.assertEqual(*(run.out.splitlines() for run in runs))
        # Each of the three steps multiplies by the graph twice, forward and backward, into 8 and into 3 columns; one
        # edge is named twice, which the first step's operand still has. Beside it the backward multiplies densely.
        numbers = edges + 2 * (edges - 1)
        forward = 3 * 2 * nodes * (width * width + width * 3)
        backward = 3 * 2 * nodes * (width * width + 2 * width * 3)
        for run in runs:
            flop = collections.Counter()
            for row in run.report("op")["rows"]:
                if row["op"] in ("aten::addmm", "aten::mm"):
                    flop[row["phase"]] += row["model_flop"]
            self.assertEqual(flop["forward"], 2 * (width + 3) * numbers + forward)
            self.assertEqual(flop["backward"], 2 * (width + 3) * numbers + backward)

    def test_a_large_graph_has_flop_and_no_values(self):
        nodes, edges, width = 2000, 50_000, 16
        run = self.run_program("sparse.py", "cuda", nodes, edges, width)
        self.assertIn(f"numbers {edges}\n", run.out)  # what is not computed counts as named once
        flop = {(row["phase"], row["op"]): row["model_flop"] for row in run.report("op")["rows"]}
        self.assertEqual(flop["forward", "aten::addmm"], 3 * 2 * (width + 3) * edges)

    def test_all_values_of_a_large_graph_are_the_cpus(self):
        size = 400, 8000, 32
        runs = [self.run_program("sparse.py", device, *size, options=("--values", "all")) for device in ("cuda", "cpu")]
        self.assertEqual(*(run.out.splitlines() for run in runs))
        self.assertNotIn("not computed", runs[0].err)


if __name__ == "__main__":
    if reason := why_no_virtual_gpu(LIBRARIES):
        print(f"note: skipped: {reason}")
        sys.exit(77)
    unittest.main()
