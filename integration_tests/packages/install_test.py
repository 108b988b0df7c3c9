#!/usr/bin/env python3
"""What `cmake --install` copies, and nothing else: the command, the library and what it opens, words about them.

    install_test.py --build FOLDER [unittest arguments]
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

OPTIONS = argparse.Namespace()

WANTED = {"bin/rfinject", "lib/rfinject/librfinject.so", "share/man/man1/rfinject.1",
          "share/bash-completion/completions/rfinject", "share/fish/vendor_completions.d/rfinject.fish",
          "share/zsh/site-functions/_rfinject", "share/doc/rfinject/copyright"}
VIRTUAL_GPU = {"lib/rfinject/virtual_gpu/" + name for name in
               ("libcuda.so", "libcuda.so.1", "libnvidia-ml.so.1", "librfinject_virtual_gpu.so", "librfinject_values.so",
                "librfinject_cuda11.so", "librfinject_cuda12.so", "librfinject_cuda13.so")}


def install(prefix, *options):
    subprocess.run(["cmake", "--install", OPTIONS.build, "--prefix", prefix, *options], check=True, capture_output=True)
    return {path.relative_to(prefix).as_posix() for path in prefix.rglob("*") if not path.is_dir()}


def readelf(*arguments):
    return subprocess.run(["readelf", *arguments], check=True, capture_output=True, text=True).stdout


def build_id(path):
    return re.search(r"Build ID: (\w+)", readelf("-n", path)).group(1)


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="rfinject-install-test-")
        cls.prefix = pathlib.Path(cls.folder.name) / "usr"
        cls.files = install(cls.prefix)
        cls.binaries = [cls.prefix / name for name in sorted(cls.files)
                        if (cls.prefix / name).read_bytes()[:4] == b"\x7fELF"]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_nothing_else_is_installed(self):
        self.assertEqual(self.files - VIRTUAL_GPU, WANTED)
        virtual = sorted(path.name for path in (OPTIONS.build / "lib/virtual_gpu").glob("*"))
        self.assertEqual(sorted(pathlib.Path(name).name for name in self.files & VIRTUAL_GPU), virtual)

    def test_nothing_is_in_bin_but_the_command(self):
        self.assertEqual([path.name for path in (OPTIONS.build / "bin").iterdir()], ["rfinject"])

    def test_it_runs_from_there(self):
        command = self.prefix / "bin/rfinject"
        environment = {k: v for k, v in os.environ.items() if not k.startswith("RFINJECT_") and k != "LD_PRELOAD"}
        result = subprocess.run([command, "env", "--json"], capture_output=True, text=True, env=environment)
        self.assertIn(f'"LD_PRELOAD": "{(self.prefix / "lib/rfinject/librfinject.so").resolve()}"', result.stdout)
        self.assertEqual(subprocess.run([command, "sh", "-c", "exit 3"], cwd=self.folder.name, env=environment).returncode, 3)

    def test_debug_information_lies_apart(self):
        debug = pathlib.Path(self.folder.name) / "debug"
        apart = install(debug, "--component", "debug")
        self.assertEqual(len(apart), len(self.binaries))
        for binary in self.binaries:
            sections = readelf("-SW", binary)
            self.assertNotRegex(sections, r"\.debug_|\.symtab", binary.name)
            number = build_id(binary)
            file = debug / "lib/debug/.build-id" / number[:2] / (number[2:] + ".debug")
            self.assertRegex(readelf("-SW", file), r"\.debug_info", binary.name)
            self.assertEqual(build_id(file), number)

    def test_no_folder_of_the_build_is_named(self):
        files = [self.prefix / name for name in self.files]
        if "RFINJECT_REPRODUCIBLE:BOOL=ON" in (pathlib.Path(OPTIONS.build) / "CMakeCache.txt").read_text(encoding="utf-8"):
            # Nor in the debug information, from which the build ids are made: they are the same wherever it was built.
            debug = pathlib.Path(self.folder.name) / "debug-paths"
            files += [debug / name for name in install(debug, "--component", "debug")]
        folders = {str(pathlib.Path(__file__).resolve().parents[2]).encode(), str(OPTIONS.build).encode()}
        for file in files:
            for folder in folders:
                self.assertFalse(folder in file.read_bytes(), f"{file.name} names {folder}")

    def test_licences_of_what_is_linked_in(self):
        text = (self.prefix / "share/doc/rfinject/copyright").read_text(encoding="utf-8")
        for words in ("Apache License", "protobuf", "Abseil", "SQLite", "libunwind", "GCC Runtime Library Exception",
                      "GNU LESSER GENERAL PUBLIC LICENSE"):
            self.assertRegex(text, f"(?i){re.escape(words)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, type=lambda path: pathlib.Path(path).resolve())
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
