"""Small Debian systems to run things in, made by debootstrap the first time (under a minute) and kept in the user's cache.

Needs root or a sudo that asks nothing.
"""
import contextlib
import fcntl
import os
import pathlib
import shutil
import subprocess
import tempfile

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "rfinject"
AS_ROOT = [] if os.geteuid() == 0 else ["sudo", "-n"]


class Unavailable(Exception):
    """Why such a system is not to be had here."""


def ensure(release, include=None):
    """The folder of a minimal Debian of that release, with the package `include`."""
    if AS_ROOT and subprocess.run([*AS_ROOT, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        raise Unavailable("it needs root (chroot)")
    folder = CACHE / ("debian-" + "-".join([release, *(["python3"] if include else [])]))
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (folder / "complete").exists():
            return folder
        if not shutil.which("debootstrap", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin"):
            raise Unavailable("there is no debootstrap")
        subprocess.run([*AS_ROOT, "rm", "-rf", str(folder)], check=True)
        result = subprocess.run([*AS_ROOT, "/usr/sbin/debootstrap", "--variant=minbase",
                                 *([f"--include={include}"] if include else []), release, str(folder)],
                                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
        if result.returncode != 0:
            subprocess.run([*AS_ROOT, "rm", "-rf", str(folder)], check=True)
            lines = (result.stdout + result.stderr).strip().splitlines()
            raise Unavailable(f"debootstrap of Debian {release} failed: {lines[-1] if lines else result.returncode}")
        subprocess.run([*AS_ROOT, "touch", str(folder / "complete")], check=True)
    return folder


def inside(system, command, environment=None, **kwargs):
    """Runs `command` in the system, with nothing but `environment` and a usual PATH in its environment."""
    variables = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", **(environment or {})}
    return subprocess.run([*AS_ROOT, "chroot", str(system), "/usr/bin/env", "-i",
                           *(f"{name}={value}" for name, value in variables.items()), *command],
                          capture_output=True, **{"timeout": 60, **kwargs})


@contextlib.contextmanager
def copy_of(system):
    """A copy for as long as the context lasts, of hard links: files may be replaced and removed in it, not written to."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="rfinject-debian-", dir=CACHE))
    try:
        subprocess.run([*AS_ROOT, "cp", "-al", f"{system}/.", str(folder)], check=True)
        yield folder
    finally:
        subprocess.run([*AS_ROOT, "rm", "-rf", str(folder)], check=True)
