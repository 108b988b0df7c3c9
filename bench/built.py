"""What a benchmark needs before it can begin: files of the build, and an interpreter with torch."""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "scripts"
# With this integration_tests/rfx_trace.py reads traces; it cannot be imported without.
SCHEMA = ROOT / "build/release/python/proto/rfinject/v1/trace_pb2.py"
PROGRAM = "bench/" + os.path.basename(sys.argv[0])


def need(*files):
    """Ends the program, with what to run, where one of these files of the build is not there."""
    for file in files:
        if not os.path.exists(file):
            sys.exit(f"{PROGRAM}: {file} is not there; run scripts/setup, then scripts/build")


def need_torch(python):
    """The same where this interpreter cannot find torch."""
    look = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
    try:
        found = subprocess.run([python, "-c", look], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        found = False
    if not found:
        sys.exit(f"{PROGRAM}: {python} has no torch; run scripts/setup, or set PYTHON to an interpreter that has it")


def make(target):
    """Builds a target of build/release, after scripts/setup, which does nothing where all packages are there."""
    for command in ([SCRIPTS / "setup"], [SCRIPTS / "build", "release", target]):
        if subprocess.run(command, stdout=sys.stderr, check=False).returncode != 0:
            sys.exit(f"{PROGRAM}: {target} cannot be built: scripts/{command[0].name} failed")
