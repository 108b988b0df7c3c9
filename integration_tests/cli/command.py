"""What the suites of the command share: its options, and a folder of its own for each test.

    SUITE_test.py --rfinject BIN --make-trace BIN --library SO --asan-program BIN [unittest arguments]
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

OPTIONS = argparse.Namespace()


class CliTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="rfinject-cli-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.environment = {k: v for k, v in os.environ.items()
                            if not k.startswith("RFINJECT_") and k not in ("LD_PRELOAD", "CUDA_INJECTION64_PATH")}
        self.environment["RFINJECT_LIBRARY"] = OPTIONS.library
        # A command built with AddressSanitizer refuses to start after a preloaded library otherwise.
        self.environment["ASAN_OPTIONS"] = "verify_asan_link_order=0"

    def run_cli(self, *arguments, environment=None, **kwargs):
        return subprocess.run([OPTIONS.rfinject, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True,
                              env={**self.environment, **(environment or {})}, timeout=60, **kwargs)

    def trace(self, kind, name=None):
        path = self.folder / (name or kind.replace(":", "") + ".rfx")
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([OPTIONS.make_trace, kind, path], check=True)
        return path

    def assert_complains(self, result, code, *patterns):
        """One line on stderr that says what and why, nothing on stdout, and the exit code."""
        self.assertEqual(result.returncode, code, result.stderr)
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), 1, result.stderr)
        self.assertTrue(lines[0].startswith("rfinject"), lines[0])
        for pattern in patterns:
            self.assertRegex(lines[0], pattern)
        self.assertEqual(result.stdout, "")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rfinject", required=True, type=os.path.abspath)
    parser.add_argument("--make-trace", required=True, type=os.path.abspath)
    parser.add_argument("--library", required=True, type=os.path.realpath)
    parser.add_argument("--asan-program", required=True, type=os.path.abspath)
    parser.add_argument("--sanitized", action="store_true", help="the command is slow")
    _, rest = parser.parse_known_args(namespace=OPTIONS)
    unittest.main(module="__main__", argv=[sys.argv[0], *rest])
