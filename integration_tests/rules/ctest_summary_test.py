"""scripts/ctest_summary counts cases, not processes, and loses no failure."""
import importlib.machinery
import importlib.util
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "ctest_summary"
loader = importlib.machinery.SourceFileLoader("ctest_summary", str(SCRIPT))
ctest_summary = importlib.util.module_from_spec(importlib.util.spec_from_loader("ctest_summary", loader))
loader.exec_module(ctest_summary)

# Two processes side by side, as ctest -j prints them.
LOG = """\
UpdateCTestConfiguration  from :/b/DartConfiguration.tcl
test 1
      Start  1: units_test
test 2
      Start  2: crash_test
1: [ RUN      ] Units.A
2: [ RUN      ] Crash.A
1: a line without an end[       OK ] Units.A (0 ms)
2: [       OK ] Crash.A (3 ms)
1: [  SKIPPED ] Units.B (0 ms)
1: [  PASSED  ] 1 test.
1: [  SKIPPED ] 1 test, listed below:
1: [  SKIPPED ] Units.B
1/4 Test  #1: units_test ....................   Passed    0.01 sec
2: what it said last
2/4 Test  #2: crash_test ....................***Exception: SegFault  0.01 sec
3: [  FAILED  ] Units.C, where GetParam() = 1 (7 ms)
3: [  FAILED  ] Units.D (7 ms)
3: [  FAILED  ] Units.C, where GetParam() = 1
3/4 Test  #3: other_test ....................***Failed    0.01 sec
4: ok
4/4 Test #4: python_names ...................   Passed    0.01 sec
"""


class CtestSummary(unittest.TestCase):
    def test_cases(self):
        passed, failed, skipped, failures = ctest_summary.summarize(LOG.splitlines())
        self.assertEqual((passed, failed, skipped), (3, 3, 1))
        self.assertEqual([name for name, _ in failures], ["crash_test", "other_test"])
        self.assertEqual(failures[0][1][-1], "what it said last")

    def test_a_second_run_in_the_same_log_counts_anew(self):
        lines = (LOG + LOG).splitlines()
        self.assertEqual(ctest_summary.summarize(lines)[:3], (6, 6, 2))

    def test_what_did_not_run(self):
        lines = ["1/3 Test #1: a ....***Skipped   0.01 sec", "2/3 Test #2: b ....***Not Run (Disabled)   0.00 sec",
                 "3/3 Test #3: c ....***Not Run   0.00 sec", "4/3 Test #4: d ....***Timeout 120.01 sec"]
        self.assertEqual(ctest_summary.summarize(lines)[:3], (0, 2, 2))


if __name__ == "__main__":
    unittest.main()
