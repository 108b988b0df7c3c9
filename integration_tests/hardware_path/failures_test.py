"""Every call of CUPTI and the driver that measuring makes fails once, under PyTorch's own CUDA build; the program must not
notice.

    failures_test.py [--all] [unittest arguments]
What a good run calls is asked of the simulated CUPTI; each of these functions then fails in a process of its own
(programs/failing.py), by one code, with --all or RFX_HARDWARE_PATH=all by several. The codes that each may fail with, all of
them, are integration_tests/simulated_gpu/failures_test.cc's.
"""
import collections
import re
import sys
import tempfile
import unittest

import gpu
import hardware_path_test as suite
import rfx_trace

STEPS = 300  # FLOP, and then samples
# CUPTI_ERROR_UNKNOWN; insufficient privileges, out of memory and hardware busy; of the driver they are errors, too.
CODES = (999, 35, 8, 46) if suite.ALL else (999,)
LEAST_FUNCTIONS = 40  # so that a run which calls next to nothing is not taken for one in which all is well


class Failures(unittest.TestCase):
    def run_all(self, folder, code, functions=()):
        variables = gpu.environment(suite.usual()[1], suite.usual()[0], RFINJECT_OVERHEAD=50)
        result = gpu.run([suite.RFINJECT, "-o", folder + "/", gpu.PYTHON, gpu.PROGRAMS / "failing.py", STEPS, code, *functions],
                         variables, timeout=1200, traces=folder)
        self.assertEqual((result.returncode, result.stdout.splitlines()[-1:]), (0, ["trained"]), result.stderr[-3000:])
        foreign = [line for line in result.stderr.splitlines() if line and not line.startswith("rfinject:")]
        self.assertEqual(foreign, [])
        return [line.split(" ", 3) for line in result.stdout.splitlines()[:-1]]

    def plain(self):
        """What the program says where nothing measures it."""
        result = gpu.run([gpu.PYTHON, gpu.PROGRAMS / "failing.py", STEPS, 0, "-"], gpu.environment(suite.usual()[1], ""))
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.split()[3]

    def test_the_program_does_not_notice(self):
        losses = self.plain()
        failed = set()
        for code in CODES:
            with tempfile.TemporaryDirectory(prefix="rfinject-failures-") as folder:
                lines = self.run_all(folder, code)
                self.assertGreaterEqual(len(lines), LEAST_FUNCTIONS, lines)
                for function, status, _, said in lines:
                    self.assertEqual((status, said), ("7", losses), f"{function} failed once with {code}")
                    failed.add(function)
                # One each, and that of the process which said what is called; whole, with every step.
                traces = list(rfx_trace.read_traces(folder))
                self.assertEqual(len(traces), len(lines) + 1)
                missing = collections.Counter(steps for _, _, steps, _ in lines) - collections.Counter(
                    str(len(trace.steps)) for trace in traces)
                self.assertFalse(missing)
                for trace in traces:
                    for one in trace.diagnostics:
                        self.assertTrue(re.search(r"\w", one.get("text", "")), one)
        print(f"{len(failed)} functions failed once with each of {len(CODES)} codes: {' '.join(sorted(failed))}")


if __name__ == "__main__":
    reason = suite.unavailable()
    if reason is not None:
        print(f"note: skipped: {reason}")
        sys.exit(77)
    unittest.main(argv=[word for word in sys.argv if word != "--all"])
