"""What a benchmark needs before it can begin: files of the build, and an interpreter with torch."""
import json
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


def need_real_cupti():
    """Ends the program where the simulated CUPTI has no real one to plan with, so that nothing would be counted."""
    if "SIM_REAL_CUPTI" not in os.environ:
        sys.exit(f"{PROGRAM}: set SIM_REAL_CUPTI to the folder of the real libcupti.so.13, which plans the counters")


def virtual_gpu(build, **facts):
    """The variables by which a Python process gets the virtual GPU without rfinject. `facts` replace those of its board."""
    libraries = os.path.abspath(os.path.join(build, "lib/virtual_gpu"))
    need(os.path.join(libraries, "libcuda.so.1"))
    board = {"name": "Simulated A100", "devices": 1, "cc_major": 8, "cc_minor": 0, "sm_count": 108,
             "memory_bytes": 40 << 30, "l2_bytes": 40 << 20, "sm_hz": 1.41e9, "dram_bytes_per_s": 1.5e12,
             "pcie_bytes_per_s": 31.5e9, "quiet": 1} | facts
    return {"PYTHONPATH": str(ROOT / "integration_tests/hardware_path/site"), "RFX_SIM_BOARD": json.dumps(board),
            "RFX_SIM_LIBRARIES": libraries, "RFX_SIM_FOLDER": "", "RFX_SIM_CUPTI": "",
            # Triton links its launchers with the driver; rfinject says where it is under --estimate.
            "TRITON_LIBCUDA_PATH": libraries}


def measured_gpu(build):
    """The same with the simulated CUPTI below it, which counts and times what is launched."""
    folder = os.path.abspath(os.path.join(build, "integration_tests/simulated_gpu"))
    need(os.path.join(folder, "cupti13/libcupti.so.13"))
    return virtual_gpu(build) | {"RFX_SIM_FOLDER": folder, "RFX_SIM_CUPTI": "cupti13/libcupti.so.13"}


def make(target):
    """Builds a target of build/release, after scripts/setup, which does nothing where all packages are there."""
    for command in ([SCRIPTS / "setup"], [SCRIPTS / "build", "release", target]):
        if subprocess.run(command, stdout=sys.stderr, check=False).returncode != 0:
            sys.exit(f"{PROGRAM}: {target} cannot be built: scripts/{command[0].name} failed")
