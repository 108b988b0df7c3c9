"""The command under test, run in a folder of its own."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

OPTIONS = argparse.Namespace()


class CommandCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="rfinject-recordings-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def cli(self, *arguments, expect=0):
        result = subprocess.run([OPTIONS.rfinject, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True,
                                check=False)
        self.assertEqual(result.returncode, expect, result.stderr)
        return result

    def report(self, *arguments):
        return json.loads(self.cli("report", *arguments, "--format", "json").stdout)


def main():
    """Runs the tests of the program: PROGRAM --rfinject BIN [unittest arguments]."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rfinject", required=True)
    _, rest = parser.parse_known_args(namespace=OPTIONS)
    unittest.main(argv=sys.argv[:1] + rest)
