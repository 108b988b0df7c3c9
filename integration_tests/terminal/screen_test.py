#!/usr/bin/env python3
"""`rfinject report` on a terminal of 24 lines and 80 columns: nothing scrolls, and the answer is there.

    screen_test.py RFINJECT MAKE_RANKS [unittest's arguments]

What the screens of SCREENS are stands in screens/; RFINJECT_UPDATE_GOLDEN=1 writes them anew, to be looked at.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "integration_tests"))
import pseudo_terminal  # noqa: E402

TRACES = ROOT / "integration_tests" / "golden" / "traces"
DEMO = HERE / "traces/demo-v100.rfx"
SCREENS = {"estimate": DEMO, "h100": ROOT / "docs/measurements/h100/resnet18_tf32.rfx", "gpt": HERE / "traces/h100-gpt2.rfx",
           "recording": ROOT / "cli/import/testdata/h100_resnet18_step.json.gz"}  # and "ranks"
# An estimate, one of a program that only infers, a measured run, its counters simulated, and recordings with and without
# layers.
SHOWN = [TRACES / "est-resnet18.rfx", TRACES / "est-inf.rfx", TRACES / "est-gan.rfx", TRACES / "measured.rfx",
         TRACES / "sim-GH100.rfx", ROOT / "docs/measurements/h200/resnet18_tf32.rfx",
         ROOT / "cli/import/testdata/dialect_2021.json", ROOT / "cli/import/testdata/rocm.json"]


def screen_of(*words):
    done = pseudo_terminal.run([RFINJECT, *words], "stdout", 60, stderr=subprocess.PIPE,
                               env={"COLUMNS": "80", "LINES": "24", "PATH": "/usr/bin:/bin", "NO_COLOR": "1", "TERM": "xterm"})
    return done.returncode, done.stdout.decode().replace("\r\n", "\n").rstrip("\n").split("\n")


class OneScreen(unittest.TestCase):
    def check(self, path):
        code, lines = screen_of("report", path)
        text = "\n".join(lines) + "\n"
        self.assertEqual(code, 0, text)
        self.assertLessEqual(len(lines), 23, text)  # and a prompt
        self.assertLessEqual(max(map(len, lines)), 80, text)
        self.assertRegex(lines[0], r"^(ESTIMATED|Measured|Imported) ")
        self.assertIn("More: rfinject report --full", lines[-1])
        return text

    def test_a_report_is_one_screen(self):
        for path in SHOWN:
            self.check(path)

    def test_screens_that_were_looked_at(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([MAKE_RANKS, TRACES / "est-resnet18.rfx", "1000000", "10", folder], check=True, stdout=subprocess.DEVNULL)
            for name, path in {**SCREENS, "ranks": pathlib.Path(folder, "traces")}.items():
                text, seen = self.check(path), HERE / f"screens/{name}.txt"
                if os.environ.get("RFINJECT_UPDATE_GOLDEN"):
                    seen.write_text(text)
                self.assertEqual(text, seen.read_text(), name)

    def test_the_answer_is_there(self):
        _, lines = screen_of("report", TRACES / "est-resnet18.rfx")
        text = "\n".join(lines)
        self.assertRegex(text, r"\n\|forward \d+ %-*\|backward \d+ %-*\|")
        head = next(i for i, line in enumerate(lines) if "most to win" in line)
        self.assertEqual(lines[head].split()[-5:], ["of", "roof", "bound", "to", "win"])
        self.assertEqual(len(lines[head + 1:lines.index("", head)]), 8, text)
        self.assertRegex(text, r"layer4\.\*\.conv2 x2 ")
        self.assertEqual([line[:3] for line in lines if line[:1].isdigit()], ["1. ", "2. ", "3. "], text)

    def test_who_asks_for_more_or_has_no_terminal_gets_all(self):
        path = str(TRACES / "est-resnet18.rfx")
        piped = subprocess.run([RFINJECT, "report", path], capture_output=True, text=True, check=True).stdout
        self.assertIn("What these numbers rest on", piped)
        for words in (("--full",), ("--by", "layer"), ("--rows", "0")):
            self.assertIn("What these numbers rest on", screen_of("report", path, *words)[1])

    def test_the_help_is_in_groups_and_fits(self):
        lines = subprocess.run([RFINJECT, "--help"], capture_output=True, text=True, check=True).stdout.split("\n")
        self.assertLessEqual(max(map(len, lines)), 80)
        groups = [line.split()[0] for line in lines if line.startswith("  ") and line[2:10].strip() and line[10:11] == " "
                  and line[2:10].strip() in ("run", "look", "compare", "convert", "plan", "machine")]
        self.assertEqual(groups, ["run", "look", "compare", "convert", "plan", "machine"])


if __name__ == "__main__":
    RFINJECT, MAKE_RANKS = sys.argv.pop(1), sys.argv.pop(1)
    unittest.main()
