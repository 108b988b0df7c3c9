#!/usr/bin/env python3
"""No alarm is raised for a program in which nothing is wrong, and one is for each that does unexplained work.

    healthy_test.py [unittest arguments]     see programs.py for the environment
"""
import pathlib
import unittest

import programs

class Healthy(programs.TestCase):
    def reports(self, file, count):
        """Runs the file's programs, at least so many, and yields the strict report of each."""
        program = pathlib.Path(__file__).with_name(file)
        result = self.cli("-o", "traces/", "--estimate", programs.GPU, programs.PYTHON, program)
        names = dict(reversed(line.split()) for line in result.stdout.splitlines())
        self.assertGreaterEqual(len(names), count)
        traces = {path.name.split(".")[-2]: path for path in (self.folder / "traces").glob("*.rfx")}
        self.assertEqual(set(names) - set(traces), set(), "programs without a trace")
        for pid, name in names.items():
            with self.subTest(program=name):
                yield self.cli("report", traces[pid], "--strict", expect=None)

    def check(self, file, count):
        for report in self.reports(file, count):
            self.assertEqual((report.returncode, report.stderr), (0, ""), report.stdout)

    def test_programs(self):
        self.check("healthy_programs.py", 40)

    def test_ways_to_train(self):
        self.check("healthy_ways.py", 100)

    def test_programs_in_which_something_is_wrong(self):
        for report in self.reports("unhealthy_programs.py", 5):
            self.assertEqual(report.returncode, 3, report.stdout)
            self.assertIn("R005", report.stdout)


if __name__ == "__main__":
    unittest.main()
