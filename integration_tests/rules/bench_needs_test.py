"""Without a build or without torch each benchmark ends with one line, which says what to run first."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCHES = sorted(path.name for path in (ROOT / "bench").iterdir() if path.is_file() and os.access(path, os.X_OK)
                 and path.suffix == "")
# These start programs with torch.
TRAINING = {"overhead": [], "step_sums_share": ["--python"], "trace_growth": ["--python"]}


class Bench(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = pathlib.Path(folder.name)
        shutil.copytree(ROOT / "bench", self.tree / "bench", ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("calibration", "integration_tests"):
            (self.tree / name).symlink_to(ROOT / name)
        (self.tree / "scripts").mkdir()
        for name in ("setup", "build"):
            script = self.tree / "scripts" / name
            script.write_text(f'#!/bin/sh\necho "{name} $*" >>"{self.tree}/ran"\nexit {int(name == "build")}\n')
            script.chmod(0o755)

    def run_bench(self, name, *arguments, **environment):
        return subprocess.run([sys.executable, "-B", self.tree / "bench" / name, *arguments], capture_output=True, text=True,
                              env={**os.environ, **environment}, timeout=60)

    def test_without_a_build(self):
        self.assertGreater(len(BENCHES), 5)
        for name in BENCHES:
            with self.subTest(name):
                done = self.run_bench(name)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                self.assertIn(f"bench/{name}: ", done.stderr)
                self.assertIn("scripts/", done.stderr)

    def test_one_that_builds_sets_up_first(self):
        self.run_bench("estimate_accuracy")
        self.assertEqual((self.tree / "ran").read_text().splitlines(), ["setup ", "build release estimate_rows"])

    def test_a_folder_without_recordings_is_no_success(self):
        tool = self.tree / "build/release/bin/rfinject"
        tool.parent.mkdir(parents=True)
        tool.touch()
        done = self.run_bench("recordings", self.tree / "scripts", "--check")
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertIn("scripts: no recording there", done.stderr)

    def test_without_torch(self):
        for file in ("bin/rfinject", "lib/librfinject.so", "tools/trace_day", "python/proto/rfinject/v1/trace_pb2.py"):
            path = self.tree / "build/release" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        python = self.tree / "python"
        python.write_text("#!/bin/sh\nexit 1\n")
        python.chmod(0o755)
        for name, option in TRAINING.items():
            with self.subTest(name):
                done = self.run_bench(name, *option, *[python for _ in option], PYTHON=str(python))
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertEqual(done.stderr.splitlines(), [
                    f"bench/{name}: {python} has no torch; run scripts/setup, or set PYTHON to an interpreter that has it"])


if __name__ == "__main__":
    unittest.main()
