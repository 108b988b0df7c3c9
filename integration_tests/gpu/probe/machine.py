"""The machine: what it is, and whether anything can be answered on it."""
import ctypes
import glob
import os
import pathlib
import platform
import re
import shutil

from probe.run import ROOT, NotAnswered, last_line


def admin_only():
    try:
        text = pathlib.Path("/proc/driver/nvidia/params").read_text(encoding="utf-8")
    except OSError:
        return None
    match = re.search(r"RmProfilingAdminOnly: *(\d)", text)
    return int(match.group(1)) if match else None


def capabilities():
    text = pathlib.Path("/proc/self/status").read_text(encoding="utf-8")
    bits = int(re.search(r"CapEff:\s*([0-9a-f]+)", text).group(1), 16)
    return {"CAP_PERFMON": bool(bits >> 38 & 1), "CAP_SYS_ADMIN": bool(bits >> 21 & 1)}


def facts(p):
    found = {"host kernel": platform.release(), "user": "root" if os.geteuid() == 0 else "uid %d" % os.geteuid(),
             "RmProfilingAdminOnly": admin_only(), **capabilities(),
             "tools": ", ".join(name for name in ("nvcc", "ncu", "nsys", "dcgmi", "nvidia-cuda-mps-control")
                                if shutil.which(name, path=p.environment.get("PATH"))) or "none"}
    for name, command in (
            ("nvidia-smi", [shutil.which("nvidia-smi", path=p.environment.get("PATH")) or "nvidia-smi", 
                            "--query-gpu=name,driver_version,memory.total,clocks.sm,clocks.mem,compute_cap,"
                            "mig.mode.current", "--format=csv,noheader"]),
            ("torch", [p.python, "-c", "import torch; print(torch.__version__, 'CUDA', torch.version.cuda, 'from', "
                       "torch.__file__, 'GPUs', torch.cuda.device_count())"]),
            ("rfinject doctor", [str(p.build / "bin" / "rfinject"), "doctor", "--python", p.python])):
        try:
            code, text = p.run("facts-" + name.split()[-1], command, 90)
            found[name] = last_line(text) if name != "rfinject doctor" else "exit code %s, see raw/" % code
        except NotAnswered as why:
            found[name] = str(why)
    return found


def no_gpu(p):
    """Why this machine cannot answer anything; empty when it can."""
    if p.options.simulated:
        return ""
    if not glob.glob("/dev/nvidia[0-9]*") and not os.path.exists("/dev/dxg"):
        try:
            ctypes.CDLL("libcuda.so.1")
        except OSError:
            return "no NVIDIA GPU here (no /dev/nvidia*, no libcuda.so.1)"
    try:
        code, text = p.run("torch", [p.python, "-c", "import torch; print(torch.cuda.is_available())"], 120)
    except NotAnswered as why:
        return str(why)
    if code != 0:
        return "%s has no torch: %s; set PYTHON=" % (p.python, last_line(text))
    return "" if last_line(text) == "True" else "the torch of %s sees no GPU; set PYTHON=" % p.python


def ensure_built(p):
    wanted = [p.build / "bin" / "rfinject", p.build / "lib" / "librfinject.so"]
    if all(path.exists() for path in wanted):
        return ""
    if p.build != (ROOT / "build" / "release").resolve():
        return "%s is not there" % next(path for path in wanted if not path.exists())
    code, text = p.run("build", [str(ROOT / "scripts" / "build"), "release", "rfinject", "librfinject.so"], 600)
    if code == 0:  # for one question of block B; the others do without
        p.run("build-session-probe", [str(ROOT / "scripts" / "build"), "release", "gpu_session_probe"], 300)
    return "" if code == 0 else "scripts/build failed: %s" % last_line(text)
