"""What the tests of the Python package share: its options, and the interpreter with the packages that it works with.

    SUITE_test.py --rfinject BIN --library SO --python PYTHON [unittest arguments]
PYTHON has the torch of the programs that are profiled.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "integration_tests/golden/traces"
OPTIONS = argparse.Namespace()
# Set in the interpreter of scripts/tools_venv, so that it is looked for once.
TOOLS = "RFX_API_TOOLS"


def main():
    """Runs the tests of the calling script, in the interpreter of scripts/tools_venv where that can be had."""
    if TOOLS not in os.environ:
        found = subprocess.run([ROOT / "scripts/tools_venv", "api"], capture_output=True, text=True)
        interpreter = found.stdout.strip() if found.returncode == 0 else sys.executable
        os.execve(interpreter, [interpreter, "-B", *sys.argv], {**os.environ, TOOLS: str(found.returncode)})
    parser = argparse.ArgumentParser()
    parser.add_argument("--rfinject", required=True, type=os.path.abspath)
    parser.add_argument("--library", required=True, type=os.path.abspath)
    parser.add_argument("--python", required=True)
    _, rest = parser.parse_known_args(namespace=OPTIONS)
    for name in [name for name in os.environ if name.startswith("RFINJECT_")]:
        del os.environ[name]
    os.environ["RFINJECT_COMMAND"] = OPTIONS.rfinject
    os.environ["RFINJECT_LIBRARY"] = OPTIONS.library
    sys.path.insert(0, str(ROOT / "python"))
    unittest.main(module="__main__", argv=[sys.argv[0], *rest])


def needs_tools(test):
    """Skips a test, or a class of them, where the packages cannot be had."""
    return unittest.skipIf(os.environ.get(TOOLS) != "0", "note: pandas, pyarrow, IPython and DuckDB are not to be had here")(test)
