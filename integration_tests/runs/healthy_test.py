#!/usr/bin/env python3
"""No alarm is raised for a program in which nothing is wrong.

    healthy_test.py [unittest arguments]     see programs.py for the environment
"""
import pathlib
import unittest

import programs

class Healthy(programs.TestCase):
    def check(self, file, count):
        program = pathlib.Path(__file__).with_name(file)
        result = self.cli("-o", "traces/", "--estimate", programs.GPU, programs.PYTHON, program)
        names = dict(reversed(line.split()) for line in result.stdout.splitlines())
        self.assertGreaterEqual(len(names), count)
        traces = {path.name.split(".")[-2]: path for path in (self.folder / "traces").glob("*.rfx")}
        self.assertEqual(set(names) - set(traces), set(), "programs without a trace")
        for pid, name in names.items():
            with self.subTest(program=name):
                report = self.cli("report", traces[pid], "--strict", expect=None)
                self.assertEqual((report.returncode, report.stderr), (0, ""), report.stdout)

    def test_programs(self):
        self.check("healthy_programs.py", 40)

    def test_ways_to_train(self):
        self.check("healthy_ways.py", 100)


if __name__ == "__main__":
    unittest.main()
