#!/usr/bin/env python3
"""That the runner of third parties' programs sees what is not as a program's line says, and keeps the page's other parts."""
import pathlib
import re
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import page  # noqa: E402
import run  # noqa: E402


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


if __name__ == "__main__":
    unittest.main()
