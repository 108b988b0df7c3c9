#!/usr/bin/env python3
"""No alarm is raised for a program in which nothing is wrong.

    healthy_test.py [unittest arguments]     see programs.py for the environment
"""
import pathlib
import unittest

import programs

PROGRAMS = pathlib.Path(__file__).with_name("healthy_programs.py")


class Healthy(programs.TestCase):
    def test_no_alarm(self):
        result = self.cli("-o", "traces/", "--estimate", programs.GPU, programs.PYTHON, PROGRAMS)
        names = dict(reversed(line.split()) for line in result.stdout.splitlines())
        self.assertGreaterEqual(len(names), 40)
        traces = {path.name.split(".")[-2]: path for path in (self.folder / "traces").glob("*.rfx")}
        self.assertEqual(set(names) - set(traces), set(), "programs without a trace")
        for pid, name in names.items():
            with self.subTest(program=name):
                report = self.cli("report", traces[pid], "--format", "json", "--strict", expect=None)
                self.assertEqual((report.returncode, report.stderr), (0, ""),
                                 self.cli("report", traces[pid], expect=None).stdout)


if __name__ == "__main__":
    unittest.main()
