"""Preloads librfinject.so into programs of an older Debian, whose glibc (2.31) lacks what today's compilers reach for.

    old_glibc_test.py LIBRARY
A minimal Debian 11 is made by debootstrap the first time (under a minute) and kept in the user's cache. Needs root or
a sudo that asks nothing. Exit code 77 when such a system is not to be had here: nothing was tested then.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import debian_system  # noqa: E402

SYSTEM = None
LIBRARY = None


class OldGlibc(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="rfinject-", dir=SYSTEM / "tmp")
        shutil.copy(LIBRARY, cls.folder)
        cls.inside = "/tmp/" + os.path.basename(cls.folder)

    @classmethod
    def tearDownClass(cls):
        subprocess.run([*debian_system.AS_ROOT, "rm", "-rf", cls.folder], check=True)

    def run_inside(self, command, preload, **variables):
        environment = dict(variables)
        if preload:
            environment["LD_PRELOAD"] = f"{self.inside}/{os.path.basename(LIBRARY)}"
            environment["RFINJECT_OUTPUT"] = f"{self.inside}/out/"
        return debian_system.inside(SYSTEM, command, environment, input=b"some input\n")

    def check_same(self, *command):
        plain, injected = self.run_inside(command, False), self.run_inside(command, True)
        self.assertEqual((injected.returncode, injected.stdout, injected.stderr),
                         (plain.returncode, plain.stdout, plain.stderr))
        return injected

    def test_it_is_an_old_glibc(self):
        result = self.run_inside(["python3", "-c", "import os; print(os.confstr('CS_GNU_LIBC_VERSION'))"], False)
        self.assertEqual(result.stdout.strip(), b"glibc 2.31", result)

    def test_the_library_is_loaded(self):
        result = self.run_inside(["/bin/cat"], True, LD_TRACE_LOADED_OBJECTS="1", LD_BIND_NOW="1", LD_WARN="1")
        self.assertIn(os.path.basename(LIBRARY).encode(), result.stdout)
        self.assertNotIn(b"not found", result.stdout + result.stderr)
        self.assertNotIn(b"undefined symbol", result.stdout + result.stderr)

    def test_cat(self):
        result = self.check_same("/bin/cat")
        self.assertEqual(result.stdout, b"some input\n")

    def test_shell_and_its_children(self):
        self.assertEqual(self.check_same("/bin/sh", "-c", "true; /bin/cat /etc/debian_version | /bin/cat; exit 3").returncode, 3)

    def test_python(self):
        self.assertEqual(self.check_same("python3", "-c", "print(6 * 7)").stdout, b"42\n")

    def test_python_exit_codes(self):
        for code in ["raise SystemExit(7)", "import os; os._exit(9)", "import os; os.kill(os.getpid(), 15)", "1 / 0"]:
            with self.subTest(code=code):
                self.assertNotEqual(self.check_same("python3", "-c", code).returncode, 0)

    def test_python_isolated(self):
        self.check_same("python3", "-I", "-S", "-E", "-c", "import sys; print(sys.flags.isolated)")

    def test_threads_and_fork(self):
        self.check_same("python3", "-c",
                        "import os, threading\n"
                        "t = threading.Thread(target=lambda: None); t.start(); t.join()\n"
                        "pid = os.fork()\n"
                        "if pid == 0: os._exit(5)\n"
                        "print(os.waitpid(pid, 0)[1] >> 8, flush=True)\n"
                        "os.execv('/bin/cat', ['cat'])")

    def test_the_virtual_gpus_libraries(self):
        """They must load wherever the wheel says that it runs, where our libstdc++ is not there either."""
        folder = pathlib.Path(LIBRARY).parent / "virtual_gpu"
        libraries = sorted(path.name for path in folder.glob("*.so*") if path.read_bytes()[:4] == b"\x7fELF")
        if not libraries:
            self.skipTest("note: this build has no virtual GPU")
        shutil.copytree(folder, os.path.join(self.folder, "virtual_gpu"))
        for name in libraries:
            result = self.run_inside(["/bin/cat"], False, LD_PRELOAD=f"{self.inside}/virtual_gpu/{name}", LD_BIND_NOW="1")
            self.assertEqual((result.returncode, result.stdout, result.stderr), (0, b"some input\n", b""), name)

    def test_nothing_was_written(self):
        # No training process ran, so there is nothing to write.
        self.run_inside(["python3", "-c", "pass"], True)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "out")))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: old_glibc_test.py LIBRARY [unittest arguments]")
    LIBRARY = os.path.abspath(sys.argv.pop(1))
    try:
        SYSTEM = debian_system.ensure("bullseye", "python3-minimal")
    except debian_system.Unavailable as why:
        print(f"note: the old-glibc test did not run: {why}")
        sys.exit(77)
    unittest.main()
