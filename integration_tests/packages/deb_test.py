#!/usr/bin/env python3
"""The Debian package: installed, used and removed in a Debian 12 and a Debian 11.

    deb_test.py --build FOLDER [unittest arguments]
The systems are made by debootstrap the first time and kept in the user's cache. Exit code 77 when none is to be had.
"""
import argparse
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import debian_system  # noqa: E402

OPTIONS = argparse.Namespace()
SYSTEMS = {}


def pack(folder):
    subprocess.run(["cpack", "--config", OPTIONS.build / "CPackConfig.cmake", "-B", folder], check=True,
                   capture_output=True, cwd=folder, env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"})
    package, = pathlib.Path(folder).glob("*.deb")
    return package


class Deb(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="rfinject-deb-test-")
        cls.package = pack(cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_twice_the_same_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            again = pack(folder)
            self.assertEqual(again.name, self.package.name)
            self.assertEqual(*(hashlib.sha256(path.read_bytes()).hexdigest() for path in (self.package, again)))

    def in_system(self, release):
        if release not in SYSTEMS:
            self.skipTest(f"note: there is no Debian {release} here")
        with debian_system.copy_of(SYSTEMS[release]) as system:
            subprocess.run([*debian_system.AS_ROOT, "cp", self.package, system / "tmp"], check=True)
            files = set(self.ok(system, "find", "/usr", "/etc", "-xdev").splitlines())
            self.ok(system, "dpkg", "-i", f"/tmp/{self.package.name}")
            self.assertIn("librfinject.so", self.ok(system, "dpkg", "-L", "rfinject"))
            self.assertRegex(self.ok(system, "rfinject", "--version"), r"^rfinject \d")
            self.assertIn("H100", self.ok(system, "rfinject", "gpus"))
            # The library is found, and the loader has no complaint about it.
            result = debian_system.inside(system, ["sh", "-c", "cd /tmp && rfinject sh -c 'echo $LD_PRELOAD'"])
            self.assertEqual((result.returncode, result.stdout, result.stderr),
                             (0, b"/usr/lib/rfinject/librfinject.so\n", b""))
            self.assertEqual(self.ok(system, "bash", "-c", ". /usr/share/bash-completion/completions/rfinject; complete -p"),
                             "complete -F _rfinject rfinject\n")
            for name in ("man/man1/rfinject.1", "zsh/vendor-completions/_rfinject", "fish/vendor_completions.d/rfinject.fish",
                         "doc/rfinject/copyright"):
                self.ok(system, "test", "-s", f"/usr/share/{name}")
            owners = self.ok(system, "find", "/usr/lib/rfinject", "/usr/bin/rfinject", "-printf", "%u:%g %m\n")
            self.assertEqual({line.split()[0] for line in owners.splitlines()}, {"root:root"})
            self.assertFalse([line for line in owners.splitlines() if line[-2] in "2367" or line[-1] in "2367"], owners)
            self.ok(system, "dpkg", "-r", "rfinject")
            left = set(self.ok(system, "find", "/usr", "/etc", "-xdev").splitlines()) - files
            self.assertEqual(left, set())

    def ok(self, system, *command):
        result = debian_system.inside(system, command)
        self.assertEqual(result.returncode, 0, (command, result.stderr))
        return result.stdout.decode()

    def test_debian_12(self):
        self.in_system("bookworm")

    def test_debian_11(self):
        self.in_system("bullseye")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, type=lambda path: pathlib.Path(path).resolve())
    OPTIONS, rest = parser.parse_known_args()
    for release, include in (("bookworm", None), ("bullseye", "python3-minimal")):
        try:
            SYSTEMS[release] = debian_system.ensure(release, include)
        except debian_system.Unavailable as why:
            print(f"note: the package was not installed in a Debian {release}: {why}")
    if not SYSTEMS:
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *rest])
