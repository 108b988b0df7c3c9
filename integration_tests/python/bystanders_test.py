"""Tests that processes which do not train write nothing, print nothing and behave as ever.
Needs no torch."""

import os
import shutil
import subprocess
import unittest

import support


class Bystanders(support.TestCase):
    def assert_same(self, command, stdin=None):
        plain = self.plain(command, stdin=stdin)
        result = self.inject(command, stdin=stdin)
        self.assertEqual((result.code, result.stdout, result.stderr), (plain.code, plain.stdout, plain.stderr))
        self.assertEqual(result.files, [])

    def test_programs(self):
        for command in (["/bin/cat"], ["/bin/true"], ["/bin/false"], ["/bin/sh", "-c", "echo $0; (exit 3); exit $?"],
                        ["/bin/ls", "/"], ["/usr/bin/env", "-i", "/bin/echo", "x"]):
            with self.subTest(command=command):
                self.assert_same(command, stdin="some text\n")

    def test_python_without_torch(self):
        for command in (["-c", "print(1 + 1)"], ["-c", "import os; os._exit(7)"], ["-c", "1/0"], ["-V"],
                        ["-c", "import sys; print([type(f) for f in sys.meta_path], sys.modules.keys())"],
                        ["-c", "import subprocess; print(subprocess.run(['/bin/echo', 'child']).returncode)"],
                        ["-c", "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"],
                        ["-c", "import os; pid = os.fork(); print(os.waitpid(pid, 0)[1] if pid else 5, flush=True)"]):
            for python in [support.PYTHON] + support.OTHER_PYTHONS:
                with self.subTest(python=python, command=command):
                    self.assert_same([python, *command])

    def test_a_module_called_torch_that_is_not_it(self):
        self.write("torch.py", "answer = 42\n")
        self.assert_same([support.PYTHON, "-c", "import sys; sys.path.insert(0, %r); import torch; print(torch.answer)"
                          % self.folder])

    def test_torch_imported_but_not_used(self):
        for python in [support.PYTHON] + support.OTHER_PYTHONS:
            self.assert_same([python, "-c", "import sys; sys.path.insert(0, %r); import torch; print(torch.__version__)"
                              % support.FAKE_TORCH])

    @unittest.skipUnless(shutil.which("strace"), "strace counts the calls")
    def test_a_process_that_is_no_concern_of_ours_pays_five_calls_at_most(self):
        def after_the_loader(*options):
            """How many system calls a program makes after the loader is done, which is when it drops its cache."""
            path = self.path("calls")
            subprocess.run(["strace", *options, "-o", path, "/bin/true"], check=True, env={"PATH": "/usr/bin:/bin"})
            with open(path) as file:
                calls = [line for line in file if "(" in line]
            return len(calls) - max(i for i, line in enumerate(calls) if line.startswith("munmap("))
        ours = after_the_loader("-E", "LD_PRELOAD=" + support.LIBRARY)
        self.assertLessEqual(ours - after_the_loader(), 5)

    def test_output_folder_is_not_made_for_nothing(self):
        target = self.path("never")
        result = self.inject(["/bin/sh", "-c", "true"], RFINJECT_OUTPUT=target + "/")
        self.assertEqual(result.code, 0)
        self.assertFalse(os.path.exists(target))


if __name__ == "__main__":
    support.main()
