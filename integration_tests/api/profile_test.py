#!/usr/bin/env python3
"""rfinject.load: what it says is what `rfinject report` says. support.py has the usage."""
import base64
import csv
import io
import os
import re
import subprocess
import sys
import tempfile
import unittest
import warnings
import xml.etree.ElementTree

import support
from support import GOLDEN, OPTIONS, ROOT


def load(*names):
    import rfinject
    return rfinject.load([GOLDEN / name for name in names])


def report(*arguments):
    return subprocess.run([OPTIONS.rfinject, "report", *map(str, arguments)], capture_output=True, text=True)


class Rows(unittest.TestCase):
    def test_they_are_those_of_csv(self):
        for by in ("model", "phase", "layer", "op", "kernel", "source"):
            text = report(GOLDEN / "measured.rfx", GOLDEN / "est-resnet18.rfx", "--by", by, "--format", "csv", "--raw").stdout
            wanted = [row for row in csv.DictReader(io.StringIO(text)) if row["record"] == "row"]
            rows = load("measured.rfx", "est-resnet18.rfx").rows(by)
            self.assertEqual(len(rows), len(wanted))
            self.assertGreater(len(rows), 2)
            for row, line in zip(rows, wanted):
                for name, value in row.items():
                    if isinstance(value, bool):
                        self.assertEqual(str(value).lower(), line[name], name)
                    elif isinstance(value, (int, float)):
                        self.assertEqual(value, float(line[name]), name)
                    else:
                        self.assertEqual(value or "", line[name], name)

    def test_every_view_of_the_command_has_rows(self):
        # The command lists its views where it refuses one.
        listed = report(GOLDEN / "measured.rfx", "--by", "colour").stderr.split("there are ")[1].split(" (")[0]
        views = re.split(", | and ", listed)
        self.assertLessEqual({"memory", "wait", "rank", "stack", "precision", "class"}, set(views))
        profile = load("measured.rfx", "est-resnet18.rfx")
        for by in views:
            text = report(GOLDEN / "measured.rfx", GOLDEN / "est-resnet18.rfx", "--by", by, "--format", "csv", "--raw").stdout
            lines = [line for line in csv.DictReader(io.StringIO(text)) if line.get("record", "row") in ("row", "run")]
            rows = profile.rows(by)
            self.assertEqual(len(rows), len(lines), by)
            for row, line in zip(rows, lines):
                for name in set(row) & set(line):
                    value, wanted = row[name], line[name]
                    if isinstance(value, (int, float)) and not isinstance(value, bool):
                        self.assertEqual(value, float(wanted), (by, name))
                    elif isinstance(value, str):
                        self.assertEqual(value, wanted, (by, name))
                    elif value is None:
                        self.assertEqual(wanted, "", (by, name))
        waits = profile.rows("wait")
        self.assertEqual([(row["run"], row["device"], row["steps"]) for row in waits],
                         [(1, "NVIDIA A100-SXM4-40GB", 0), (2, "A100-SXM4-40GB", 2)])

    def test_by_run(self):
        rows = load("a100.rfx", "v100.rfx").rows("run")
        self.assertEqual([row["gpu"] for row in rows], ["A100-SXM4-40GB", "V100-SXM2-16GB"])

    def test_summary_and_alarms(self):
        profile = load("est-resnet18.rfx")
        self.assertEqual(profile.summary["launches"], sum(row["launches"] for row in profile.rows("kernel")))
        self.assertEqual(len(profile.reports), 1)
        alarms = load("random3.rfx", "est-resnet18.rfx").alarms
        self.assertEqual({alarm["id"] for alarm in alarms}, {"R012"})
        said = report(GOLDEN / "random3.rfx", "--format", "json").stdout
        self.assertEqual(len(alarms), len(re.findall(r'"id": "R\d', said)))
        self.assertTrue(repr(profile).startswith("ESTIMATED on A100-SXM4-40GB"))

    @support.needs_tools
    def test_pandas(self):
        profile = load("est-resnet18.rfx")
        frame = profile.to_pandas("kernel")
        self.assertAlmostEqual(frame.time_ns.sum() / profile.summary["time_ns"], 1, places=12)
        self.assertEqual(frame.groupby("phase").launches.sum()["forward"],
                         sum(row["launches"] for row in profile.rows("phase") if row["phase"] == "forward"))

    @support.needs_tools
    def test_arrow(self):
        import pyarrow
        import pyarrow.compute
        profile = load("est-resnet18.rfx", "measured.rfx")
        table = profile.to_arrow("kernel")
        self.assertEqual(table.num_rows, len(profile.rows("kernel")))
        self.assertEqual(table.schema.field("flop").type, pyarrow.int64())
        self.assertEqual(pyarrow.compute.sum(table["launches"]).as_py(),
                         sum(report["summary"]["launches"] for report in profile.reports))


class Failures(unittest.TestCase):
    def test_the_commands_own_line(self):
        import rfinject
        with self.assertRaises(rfinject.RfinjectError) as caught:
            rfinject.load("/nonexistent/x.rfx")
        self.assertEqual(str(caught.exception), "/nonexistent/x.rfx: no such file or folder")
        self.assertEqual(caught.exception.code, 1)
        with self.assertRaisesRegex(ValueError, "--by colour: there are run, model, phase"):
            load("measured.rfx").rows("colour")

    def test_an_empty_path_is_not_the_working_folder(self):
        import rfinject
        for path in ("", [""], [str(GOLDEN / "measured.rfx"), ""]):
            with self.assertRaisesRegex(rfinject.RfinjectError, "is empty"):
                rfinject.load(path)

    def test_in_a_removed_working_folder(self):
        import rfinject
        here = os.getcwd()
        try:
            with tempfile.TemporaryDirectory() as folder:
                os.chdir(folder)
            for path in (None, "x.rfx"):
                with self.assertRaisesRegex(rfinject.RfinjectError, "the working folder was removed"):
                    rfinject.load(path)
            self.assertGreater(len(load("measured.rfx").rows()), 0)
        finally:
            os.chdir(here)

    def test_a_damaged_trace_is_used_up_to_the_damage(self):
        import rfinject
        whole = (GOLDEN / "est-resnet18.rfx").read_bytes()
        with tempfile.NamedTemporaryFile(suffix=".rfx") as file:
            file.write(whole[:-10])
            file.flush()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                profile = rfinject.load(file.name)
        self.assertEqual([warning.category for warning in caught], [rfinject.RfinjectWarning])
        self.assertIn("ends inside a frame", str(caught[0].message))
        self.assertGreater(profile.summary["launches"], 0)

    def test_a_path_is_no_option(self):
        import rfinject
        with self.assertRaisesRegex(rfinject.RfinjectError, "--by: no such file"):
            rfinject.load("--by")


class Html(unittest.TestCase):
    def test_names_are_text(self):
        page = load("hostile.rfx")._repr_html_()
        lines, picture = re.fullmatch(r'(.*)<img alt="roofline" style="[^"<>]*" src="data:image/svg\+xml;base64,([^"<>]*)"/>', page,
                                      re.DOTALL).groups()
        self.assertEqual(re.sub(r"</?div>", "", lines).count("<"), 0)
        root = xml.etree.ElementTree.fromstring(base64.b64decode(picture))
        self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
        self.assertEqual([element.tag for element in root.iter() if element.tag.endswith("script")], [])

    def test_opening_lines_are_escaped(self):
        profile = load("est-resnet18.rfx")
        profile.reports[0]["summary"]["headline"][0] = "<img src=x onerror=alert(1)>"
        self.assertIn("<div>&lt;img src=x onerror=alert(1)&gt;</div>", profile._repr_html_())


class LogTo(unittest.TestCase):
    def test_both_kinds_of_writer(self):
        class Board:
            def __init__(self):
                self.scalars = {}

            def add_scalar(self, tag, value, global_step=None):
                self.scalars[tag] = (value, global_step)

        class Wandb:
            def log(self, numbers, step=None):
                self.got = (numbers, step)

        profile = load("est-resnet18.rfx", "measured.rfx")
        board, wandb = Board(), Wandb()
        tags = profile.log_to(board, step=7)
        self.assertEqual(board.scalars["rfinject/step_gpu_time_ns"], (profile.summary["step_gpu_time_ns"], 7))
        forward = next(row for row in profile.rows("phase") if row["phase"] == "forward" and row["model"] == "ResNet")
        self.assertEqual(tags["rfinject/forward/ResNet/flop"], forward["flop"])
        self.assertEqual(tags["rfinject/2/launches"], profile.reports[1]["summary"]["launches"])
        profile.log_to(wandb, step=7)
        self.assertEqual(wandb.got, (tags, 7))
        with self.assertRaisesRegex(TypeError, "add_scalar or log"):
            profile.log_to(object())


class Import(unittest.TestCase):
    def test_it_needs_the_standard_library_only(self):
        # -S: no site-packages.
        program = ("import sys\nsys.path.insert(0, sys.argv[1])\nimport rfinject\nprint(rfinject.load(sys.argv[2]).summary['launches'])\n"
                   "try: rfinject.load(sys.argv[2]).to_pandas()\n"
                   "except ImportError as error: print(error)\n")
        result = subprocess.run([sys.executable, "-S", "-B", "-c", program, ROOT / "python", GOLDEN / "est-resnet18.rfx"],
                                capture_output=True, text=True)
        self.assertEqual(result.stdout.splitlines(), ["1090", "to_pandas needs pandas: pip install rfinject[pandas]"],
                         result.stderr)


if __name__ == "__main__":
    support.main()
