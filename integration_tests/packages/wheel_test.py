#!/usr/bin/env python3
"""The wheel: made twice, looked at, installed into a fresh environment, used there, and removed.

    wheel_test.py --build FOLDER --python PYTHON [unittest arguments]
PYTHON has the torch of the program that is profiled.
"""
import argparse
import base64
import csv
import hashlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile

OPTIONS = argparse.Namespace()
ROOT = pathlib.Path(__file__).resolve().parents[2]


def make(folder):
    result = subprocess.run([sys.executable, "-B", ROOT / "scripts/wheel", "--build", OPTIONS.build, "-o", folder],
                            capture_output=True, text=True, timeout=120,
                            env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"})
    if result.returncode != 0:
        raise AssertionError(result.stderr)
    return pathlib.Path(result.stdout.strip())


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="rfinject-wheel-test-")
        cls.path = pathlib.Path(cls.folder.name)
        cls.wheel = make(cls.path / "one")
        cls.environment = {name: value for name, value in os.environ.items()
                           if not name.startswith(("RFINJECT_", "PYTHON", "PIP_")) and name != "LD_PRELOAD"}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_twice_the_same_bytes(self):
        again = make(self.path / "two")
        self.assertEqual(again.name, self.wheel.name)
        self.assertEqual(*(hashlib.sha256(path.read_bytes()).hexdigest() for path in (self.wheel, again)))

    def test_record(self):
        self.assertRegex(self.wheel.name, r"^rfinject-[\d.]+-py3-none-manylinux_2_28_x86_64\.whl$")
        self.assertLess(self.wheel.stat().st_size, 15_000_000)
        with zipfile.ZipFile(self.wheel) as wheel:
            record, = [name for name in wheel.namelist() if name.endswith(".dist-info/RECORD")]
            listed = {}
            for name, digest, size in csv.reader(io.StringIO(wheel.read(record).decode())):
                listed[name] = digest
                if name != record:
                    data = wheel.read(name)
                    self.assertEqual(size, str(len(data)))
                    wanted = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                    self.assertEqual(digest, "sha256=" + wanted)
            self.assertEqual(set(listed), set(wheel.namelist()))

    def test_auditwheel_agrees(self):
        tools = subprocess.run([ROOT / "scripts/test_tools"], capture_output=True, text=True)
        if tools.returncode != 0:
            self.skipTest("note: auditwheel is not to be had here")
        result = subprocess.run([sys.executable, "-m", "auditwheel", "show", self.wheel],
                                capture_output=True, text=True, timeout=120,
                                env={**self.environment, "PYTHONPATH": tools.stdout.strip()})
        self.assertEqual(result.returncode, 0, result.stderr)
        said = " ".join(result.stdout.split())
        policy = re.search(r'consistent with the following platform tag: "manylinux_2_(\d+)_x86_64"', said)
        self.assertIsNotNone(policy, said)
        self.assertLessEqual(int(policy.group(1)), 28)

    def test_from_pip_install_to_a_report(self):
        venv = self.path / "venv"
        subprocess.run(["/usr/bin/python3", "-m", "venv", venv], check=True, capture_output=True, env=self.environment)

        def run(*command):
            begin = time.monotonic()
            result = subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=self.path, env=self.environment)
            self.assertEqual(result.returncode, 0, (command, result.stderr))
            return result.stdout, time.monotonic() - begin

        _, importing = run(OPTIONS.python, "-c", "import torch")
        _, installing = run(venv / "bin/python", "-m", "pip", "install", "-q", "--no-index", "--no-deps",
                            "--disable-pip-version-check", self.wheel)
        _, running = run(venv / "bin/rfinject", "--estimate", "A100-SXM4-40GB", "-q", OPTIONS.python,
                         ROOT / "examples/tiny_layers.py", "--layers", "20", "--steps", "4")
        report, reporting = run(venv / "bin/rfinject", "report", "--format", "json")
        self.assertEqual(json.loads(report)["estimated_gpu"], "A100-SXM4-40GB")
        # The package finds the command that came with it, and needs no other package.
        said, _ = run(venv / "bin/python", "-c", "import rfinject\n"
                      "print(rfinject.load().summary['launches'], rfinject._command.find(), rfinject.is_injected())")
        self.assertEqual(said.split(), [str(json.loads(report)["summary"]["launches"]), str(venv / "bin/rfinject"), "False"])
        total = installing + running + reporting
        print(f"\nfrom pip install to a report: {total:.1f} s, {total / importing:.1f} times `python -c 'import torch'` "
              f"({installing:.1f} install, {running:.1f} run, {reporting:.2f} report)")
        run(venv / "bin/python", "-m", "pip", "uninstall", "-q", "-y", "--disable-pip-version-check", "rfinject")
        self.assertEqual([path for path in venv.rglob("*rfinject*") if not path.is_dir()], [])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--python", required=True)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
