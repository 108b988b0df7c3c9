#!/usr/bin/env python3
"""What injector/changes/edits.py makes of a program's text, without a torch: each patch is applied by git, and read."""
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest

sys.dont_write_bytecode = True
CHANGES = pathlib.Path(__file__).resolve().parents[2] / "injector/changes"
HEADER = 'torch.autocast("cuda", torch.bfloat16)'


class Edits(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="rfinject-edits-test-")
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name).resolve()
        torch = types.ModuleType("torch")
        torch.__file__ = "/nowhere/torch/__init__.py"
        self.addCleanup(sys.modules.__setitem__, "torch", sys.modules.get("torch"))
        sys.modules["torch"] = torch
        self.space = {"OPTIONS": {"report": str(self.folder.parent / (self.folder.name + ".report"))}}
        self.addCleanup(pathlib.Path(self.space["OPTIONS"]["report"]).unlink, missing_ok=True)
        for name in ("frame.py", "edits.py"):
            exec(compile((CHANGES / name).read_text(), "<rfinject>", "exec"), self.space)
        self.space["HERE"] = str(self.folder)

    def program(self, text, name="train.py"):
        path = self.folder / name
        path.write_bytes(text.encode())
        return str(path)

    def patched(self, path, *edits):
        """The file's text with the patch of all edits, which git applies. Edits that do not go along are left out."""
        for edit in edits:
            if edit is not None:
                self.space["add_edit"](edit)
        report = pathlib.Path(self.space["OPTIONS"]["report"])
        lines = [line.split("\t") for line in report.read_text().splitlines()] if report.exists() else []
        text = [words[2] for words in lines if words[1] == "patch"][-1]
        patch = text.replace("\\\\", "\0").replace("\\n", "\n").replace("\\t", "\t").replace("\\r", "\r").replace("\0", "\\")
        subprocess.run(["git", "init", "-q", "."], cwd=self.folder, check=True)
        subprocess.run(["git", "apply", "-"], cwd=self.folder, input=patch.encode(), check=True)
        return pathlib.Path(path).read_bytes().decode()

    def argument(self, text, line, *words, **options):
        path = self.program(text)
        return path, self.space["edit_argument"]((path, line), *words, **options)

    def test_an_argument_is_added_replaced_or_put_in_the_place_of_another(self):
        for before, words, options, after in (
                ("x = Adam(p)\n", ("Adam", "fused", "True", False), {}, "x = Adam(p, fused=True)\n"),
                ("x = f(Adam(\n    p,\n    lr=1,\n))\n", ("Adam", "fused", "True", False), {}, "x = f(Adam(\n    p,\n    lr=1, fused=True,\n))\n"),
                ("x = Adam()\n", ("Adam", "fused", "True", False), {}, "x = Adam(fused=True)\n"),
                ("x = Adam(p, fused = no, lr=1)\n", ("Adam", "fused", "True", True), {}, "x = Adam(p, fused=True, lr=1)\n"),
                ("x = Adam(p, foreach=True)\n", ("Adam", "fused", "True", False), {"instead_of": ("foreach",)}, "x = Adam(p, fused=True)\n")):
            with self.subTest(before=before):
                self.space["_files"].clear()
                self.space["_edits"].clear()
                path, edit = self.argument(before, 1, *words, **options)
                self.assertEqual(self.patched(path, edit), after)

    def test_where_an_argument_cannot_be_said_there_is_no_edit(self):
        for text, given in (("x = Adam(p, **more)\n", True), ("x = zero_grad(False)\n", True), ("x = Adam(p), Adam(q)\n", False),
                            ("x = make(p)\n", False), ("x = Adam(q for q in p)\n", False), ("x = Adam(p,\n", False)):
            with self.subTest(text=text):
                self.space["_files"].clear()
                self.assertIsNone(self.argument(text, 1, "zero_grad" if "zero" in text else "Adam", "fused", "True", given)[1])

    def test_edits_of_one_line_and_of_lines_beside_each_other_go_along(self):
        path = self.program("a = Loader(x)\nb = Loader(y)\nwith_line(a)\n")
        edits = [self.space["edit_argument"]((path, line), "Loader", option, text, False)
                 for line in (1, 2) for option, text in (("num_workers", "2"), ("pin_memory", "True"))]
        edits.append(self.space["edit_with"](path, 1, None, "here()"))
        self.assertEqual(self.patched(path, *edits),
                         "with here():\n    a = Loader(x, num_workers=2, pin_memory=True)\n"
                         "b = Loader(y, num_workers=2, pin_memory=True)\nwith_line(a)\n")

    def test_an_edit_that_does_not_go_along_is_told_and_left_out(self):
        path = self.program("a = Adam(x, fused=False)\n")
        one = self.space["edit_argument"]((path, 1), "Adam", "fused", "True", True)
        other = self.space["edit_argument"]((path, 1), "Adam", "fused", "None", True)
        self.assertTrue(self.space["add_edit"](one))
        self.assertTrue(self.space["add_edit"](one))
        self.assertFalse(self.space["add_edit"](other))
        self.assertEqual(self.patched(path), "a = Adam(x, fused=True)\n")

    def test_a_with_goes_around_the_statements_of_the_block_that_both_lines_share(self):
        text = "def f():\n\tfor x in y:\n\t\tif x:\n\t\t\tz = model(x)\n\t\tloss = g(z)\n\t\toptimizer.zero_grad()\n\t\tloss.backward()\n"
        path = self.program(text)
        self.assertEqual(self.patched(path, self.space["edit_with"](path, 4, 7, HEADER)),
                         text.replace("\t\tif x:\n\t\t\tz = model(x)\n\t\tloss",
                                      f"\t\twith {HEADER}:\n\t\t\tif x:\n\t\t\t\tz = model(x)\n\t\t\tloss"))

    def test_a_with_of_another_autocast_becomes_this_one_and_others_get_one_inside(self):
        for header, new in (("torch.amp.autocast('cuda', enabled=amp)", f"with {HEADER}:\n    a = model(x)\n    b = g(a)\n"),
                            ("ctx", f"with ctx:\n    with {HEADER}:\n        a = model(x)\n        b = g(a)\n")):
            self.space["_files"].clear()
            self.space["_edits"].clear()
            path = self.program(f"with {header}:\n    a = model(x)\n    b = g(a)\nb.backward()\n")
            self.assertEqual(self.patched(path, self.space["edit_with"](path, 2, None, HEADER, whole=True)), new + "b.backward()\n")

    def test_texts_that_an_indent_would_change_are_left_alone(self):
        for text in ('a = model("""x\ny""")\n', "a = model(f'''{x}\ny''')\n"):
            self.space["_files"].clear()
            path = self.program(text)
            self.assertIsNone(self.space["edit_with"](path, 1, None, HEADER))

    def flags(self, text, function):
        """The text with the flags of a change that is made while `function` of it runs."""
        path = self.program(text)
        space = {"edit": self.space["edit_flags"], "FLAGS": ["torch.backends.cudnn.benchmark = True"]}
        exec(compile(text, path, "exec"), space)
        return self.patched(path, space[function]())

    def test_flags_stand_behind_the_imports(self):
        text = "import torch.nn as nn\nimport ast\r\n\r\ndef run():\r\n    return edit(FLAGS)\r\n".replace("\r\n", "\n")
        sys.modules.pop("torch")
        sys.modules["torch"] = torch = types.ModuleType("torch")
        torch.__path__, sys.modules["torch.nn"] = [], types.ModuleType("torch.nn")
        torch.nn = sys.modules["torch.nn"]
        self.addCleanup(sys.modules.pop, "torch.nn")
        self.assertEqual(self.flags(text, "run"), text.replace(
            "import ast\n", "import ast\nimport torch\n\ntorch.backends.cudnn.benchmark = True\n"))

    def test_flags_that_the_file_sets_itself_are_set_where_it_runs(self):
        text = ('import ast\n\ndef main():\n    cudnn.benchmark = False\n\ndef run():\n    """Trains"""\n    return edit(FLAGS)\n')
        self.assertEqual(self.flags(text, "run"),
                         text.replace('"""\n', '"""\n    torch.backends.cudnn.benchmark = True\n'))

    def test_flags_that_a_file_without_functions_sets_itself_stand_in_front_of_what_runs(self):
        text = "import types\ncudnn = types.SimpleNamespace()\ncudnn.benchmark = False\nresult = [\n    edit(FLAGS)]\nrun = lambda: result[0]\n"
        self.assertEqual(self.flags(text, "run"), text.replace("result =", "torch.backends.cudnn.benchmark = True\nresult ="))

    def test_files_of_packages_and_of_other_folders_are_no_programs_own(self):
        (self.folder / "site-packages").mkdir()
        for path in (self.program("x = Adam(p)\n", "site-packages/a.py"), __file__):
            self.assertIsNone(self.space["edit_argument"]((path, 1), "Adam", "fused", "True", False))


if __name__ == "__main__":
    unittest.main()
