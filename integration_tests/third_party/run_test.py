#!/usr/bin/env python3
"""That the runners of third parties' programs see what is not as a program's line says, and keep the page's other parts."""
import pathlib
import re
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import page  # noqa: E402
import run  # noqa: E402
import tries  # noqa: E402


def program(**changed):
    facts = {"name": "some", "packages": [], "options": [], "command": ["some.py"], "steps": 3, "samples": 24, "layers": 99.0,
             "flop": True, "operators": ["aten::mm"], "quick": False, "excuse": "", "note": ""}
    return run.Program(**facts | changed)


def seen(**changed):
    facts = {"code": 0, "steps": 3, "samples": 24, "layers": 0.995, "flop": {"products": 7.0}, "counted": {"products": 7},
             "peak_bytes": 5, "peak_said": 5, "operators": {"aten::mm"}}
    return run.Seen(**facts | changed)


class Judging(unittest.TestCase):
    def test_each_difference_is_seen(self):
        for changed in ({"code": 1}, {"steps": 2}, {"samples": 0}, {"layers": 0.98}, {"flop": {"products": 7.1}},
                        {"counted": {}}, {"peak_bytes": 4}, {"operators": set()}):
            with self.subTest(changed=changed):
                found = seen(**changed)
                run.judge(program(), found)
                self.assertEqual(len(found.wrong), 1, found.wrong)
        whole = seen()
        run.judge(program(), whole)
        self.assertEqual(whole.wrong, [])

    def test_what_is_excused_has_to_be_wrong(self):
        for wrong, result in ((["3 steps"], 0), ([], 1)):
            found = seen(wrong=wrong)
            run.excuse(program(excuse="its package wants a newer torch"), found)
            self.assertEqual(len(found.wrong), result)

    def test_the_table_can_be_read(self):
        rows = list(run.programs("2.15"))
        self.assertEqual(len({row.name for row in rows}), len(rows))
        self.assertGreaterEqual(len(rows), 40)
        for row in rows:
            script = next(word for word in row.command if word.endswith(".py"))
            self.assertTrue((run.HERE / "programs" / script).exists(), script)
            self.assertLessEqual(set(row.packages), {"torchvision"} if row.quick else set(row.packages))

    def test_a_page_keeps_what_did_not_run(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "page.md"
            original, page.versions = page.versions, lambda *_: ["torch 1"]
            self.addCleanup(setattr, page, "versions", original)
            for torch, name, steps in (("2.6", "a", 1), ("2.15", "a", 2), ("2.6", "c", 3), ("2.6", "b", 4), ("2.6", "a", 5)):
                page.write(path, torch, "A100", "python", [(program(name=name), seen(steps=steps))], ["a", "b", "c"])
            text = path.read_text(encoding="utf-8")
        self.assertEqual(re.findall(r"^## .*|^\| \w \| whole \| \d", text, re.MULTILINE),
                         ["## torch 2.15", "| a | whole | 2", "## torch 2.6", "| a | whole | 5", "| b | whole | 4", "| c | whole | 3"])
        self.assertIn("3 of 3 programs are whole", text)


def row(**changed):
    facts = {"phase": "forward", "op": "aten::mm", "launches": "2", "dram_bytes": "100.0", "kernels": "a_engine1 1, a_engine2 1"}
    return tuple((facts | changed).items())


class Tries(unittest.TestCase):
    def test_each_change_of_each_program_has_an_edit_by_hand_that_applies(self):
        found = tries.programs()
        self.assertGreaterEqual(len({program.folder for program in found}), 6)
        self.assertGreaterEqual(len({change.name.split("=")[0] for program in found for change in program.changes}), 12)
        for program in found:
            edits = tries.edits(program)
            made = {change.name for change in program.changes if change.kernels not in ("already made", "nothing to change")}
            self.assertEqual(set(edits), made, program.name)
            with tempfile.TemporaryDirectory() as folder:
                runner = tries.Runner("rfinject", "python", program, folder)
                for name in edits:
                    with self.subTest(program=program.name, change=name):
                        self.assertTrue(any(runner.copy(edits[name]).glob("*.py")))

    def test_each_difference_of_operators_is_seen(self):
        for expected, changed, whole in (
                ("same", {}, True), ("same", {"phase": "backward"}, False), ("same", {"kernels": "b 2"}, False),
                ("same but aten::mm", {"kernels": "b 2"}, True), ("same but aten::add", {"kernels": "b 2"}, False),
                ("but aten::mm", {"kernels": "b 2"}, True), ("but aten::add", {"kernels": "b 2"}, False),
                ("launches", {"phase": "backward"}, True), ("launches", {"dram_bytes": "100.5"}, True),
                ("launches", {"dram_bytes": "102"}, False), ("launches", {"launches": "3"}, False),
                ("launches", {"op": "aten::bmm"}, False), ("launches but aten::mm", {"launches": "3"}, True)):
            with self.subTest(expected=expected, changed=changed):
                self.assertEqual(tries.compare(expected, [row()], [row(**changed)], "it") == [], whole)
        of_any_engine = tries.operator_rows.of_any_engine
        self.assertEqual(of_any_engine([row()]), of_any_engine([row(kernels="a_engine0 2")]))
        self.assertNotEqual(of_any_engine([row()]), of_any_engine([row(kernels="b_engine0 2")]))

    def test_what_try_says_is_held_against_the_line(self):
        trial = {"text": "at a.py:1", "state": "made", "diffs": []}
        for line, said, wrong in ((("same", "-"), trial, 0), (("same", "applies"), trial, 1), (("same", "-"), trial | {"diffs": ["x"]}, 1),
                                  (("already made", "-"), trial, 1), (("already made", "-"), trial | {"state": "already made"}, 0),
                                  (("same", "-"), trial | {"state": "failed"}, 1)):
            change = tries.Change("tf32", *line, "")
            runner = type("Runner", (), {"operators": lambda self, diff: [row()]})()
            tries.judge(runner, change, said, [row()], [row()], "an edit")
            self.assertEqual(len(change.wrong), wrong, (line, change.wrong))

    def test_the_page_keeps_its_other_parts(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "page.md"
            original, page.versions = page.versions, lambda *_: ["torch 1"]
            self.addCleanup(setattr, page, "versions", original)
            page.write(path, "2.15", "A100", "python", [(program(name="a"), seen())], ["a"])
            for name, note in (("one", "x"), ("two", "y"), ("one", "z")):
                change = tries.Change("tf32", "same but aten::mm", "applies", note)
                page.write_tries(path, "2.15", "A100", [tries.Program(name, [], "", [], [change], "tf32")])
            page.write(path, "2.6", "A100", "python", [(program(name="a"), seen())], ["a"])
            text = path.read_text(encoding="utf-8")
        self.assertEqual(re.findall(r"^## .*|^\| one .*|^\| two .*", text, re.MULTILINE), [
            "## torch 2.15", "## torch 2.6", "## `rfinject try`, torch 2.15",
            "| one | tf32 | same kernels but for aten::mm | applies | z |", "| one | `try --diff` | | applies | tf32 |",
            "| two | tf32 | same kernels but for aten::mm | applies | y |", "| two | `try --diff` | | applies | tf32 |"])
        self.assertIn("4 of 4 lines on 2 programs", text)


if __name__ == "__main__":
    unittest.main()
