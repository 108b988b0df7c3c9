#!/usr/bin/env python3
"""Training loops as people write them (loops.py): their steps, samples, batches and FLOP are exact, whatever window of
--steps they are measured in.

    loops_test.py [unittest arguments]     see programs.py for the environment

RFINJECT_LOOP_STEPS="1 2 3" gives the windows in place of those below; 0 is a run without --steps.
"""
import importlib
import os
import pathlib
import shutil
import tempfile
import unittest

import loops
import programs
from prefork import Prefork

importlib.import_module("loops_of_several")  # adds to loops.LOOPS

# Each costs an import of torch, and a program and two reports of each loop: some 20 s of CPU time.
WINDOWS = [int(n) for n in os.environ.get("RFINJECT_LOOP_STEPS", "0 3").split()]
PRODUCTS = {"aten::" + name for name in ("mm", "addmm", "matmul", "linear", "bmm")}
PROGRAM = """
import sys
sys.path.insert(0, %r)
import loops, loops_of_several
loops.LOOPS[%r].run()
"""


def expected(loop, window):
    """(steps, samples, FLOP of all steps, samples of a step or 0), and the same of the validation or None."""
    measured = min(window or len(loop.steps), len(loop.steps))
    period = loop.period if 2 * loop.period <= len(loop.steps) else 1
    if measured >= period:
        measured -= measured % period
    steps = loop.steps[:measured]

    def usual(samples):
        most = max(set(samples), key=samples.count)
        return most if 2 * samples.count(most) > len(samples) else 0

    training = (measured // period or measured, sum(s.samples for s in steps), sum(s.flop for s in steps),
                usual([s.samples for s in steps]))
    # Batches before the first step are counted as steps while they are all that runs.
    before = [b for b in loop.batches if b.after == 0][:window or None]
    seen = before + [b for b in loop.batches if b.after > 0 and (window == 0 or b.after < window)]
    if not seen:
        return training, None
    return training, (len(seen), sum(b.samples for b in seen), sum(b.flop for b in seen), max(b.samples for b in seen))


class Loops(programs.TestCase):
    def check(self, window):
        traces = pathlib.Path(tempfile.mkdtemp(prefix="rfinject-loops-test-"))
        self.addCleanup(shutil.rmtree, traces, ignore_errors=True)
        command = [programs.RFINJECT, "--estimate", programs.GPU, "-o", f"{traces}/"]
        command += ["--steps", str(window)] if window else []
        forked = Prefork([*command, programs.PYTHON], self.environment)
        self.addCleanup(forked.close)
        for name, loop in loops.LOOPS.items():
            with self.subTest(loop=name, window=window):
                program = self.write(f"{name}.py", PROGRAM % (str(pathlib.Path(__file__).parent), name))
                pid, result = forked.run(str(self.folder / program))
                self.assertEqual(result.returncode, 0, result.stderr)
                trace, = traces.glob(f"*.{pid}.rfx")
                self.assertEqual(self.measured(trace), expected(loop, window))

    def measured(self, trace):
        reports = self.report(trace, "--by", "op")
        flop = {}
        for report in reports.get("reports", [reports]):
            validation = any(phase["phase"] == "eval" for phase in report["phases"])
            flop[validation] = sum(row["model_flop"] for row in report["rows"] if row["op"] in PRODUCTS)
        found = {}
        for run in self.report(trace, "--by", "run")["runs"]:
            validation = run["mode"] == "inference"
            found[validation] = (run["steps"], run["samples"], flop[validation], run["batch_size"] or 0)
        return found.get(False), found.get(True)


for number in WINDOWS:
    setattr(Loops, f"test_window_of_{number}" if number else "test_without_a_window",
            lambda self, window=number: self.check(window))

if __name__ == "__main__":
    unittest.main()
