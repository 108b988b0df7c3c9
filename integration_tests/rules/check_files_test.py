"""check_files.py finds what is too large and what the tools complain of."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_files  # noqa: E402


class CheckFiles(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def write(self, name, text):
        (self.root / name).write_text(text, encoding="utf-8")

    def test_good(self):
        self.write("a.py", "import sys\nprint(sys.argv)\n")
        self.write("run", "#!/usr/bin/env bash\necho ok\n")
        self.assertEqual(check_files.check(self.root), [])

    def test_large(self):
        self.write("data", "x" * (check_files.LIMIT + 1))
        self.assertRegex(check_files.check(self.root)[0], r"^data: 2000001 bytes")
        self.assertEqual(check_files.too_large(self.root, ["data"], large={"data"}), [])

    @unittest.skipUnless(shutil.which("git"), "no git")
    def test_what_git_does_not_track_is_not_ours(self):
        subprocess.run(["git", "init", "-q", str(self.root)], check=True)
        self.write("data", "x" * (check_files.LIMIT + 1))
        self.assertEqual(check_files.check(self.root), [])

    @unittest.skipUnless(shutil.which("pyflakes3"), "no pyflakes3")
    def test_python(self):
        self.write("tool", "#!/usr/bin/env python3\nimport sys\n")
        self.assertIn("sys", "".join(check_files.check(self.root)))

    @unittest.skipUnless(shutil.which("shellcheck"), "no shellcheck")
    def test_shell(self):
        self.write("tool", "#!/bin/sh\nfor f in `ls`; do echo $f; done\n")
        self.assertIn("SC2086", "".join(check_files.check(self.root)))


if __name__ == "__main__":
    unittest.main()
