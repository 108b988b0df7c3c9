"""How long a command takes and how much memory, for benchmarks of whole commands."""
import os
import pathlib
import re
import subprocess
import sys
import threading
import time


def measure(command):
    """(wall seconds, processor seconds, peak of resident memory in bytes) of a child.

    Its standard output is thrown away. A child that fails ends this process.
    The peak is VmHWM, polled: what wait4 gives for it counts the parent's memory before exec.
    """
    begin = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    peak = 0
    ended = threading.Event()

    def poll():
        nonlocal peak
        while not ended.wait(0.01):
            try:
                if os.readlink(f"/proc/{child.pid}/exe") == os.path.realpath(command[0]):  # not before exec
                    found = re.search(r"VmHWM:\s*(\d+) kB", pathlib.Path(f"/proc/{child.pid}/status").read_text())
                    peak = max(peak, int(found[1]) * 1024 if found else 0)
            except OSError:
                pass

    thread = threading.Thread(target=poll)
    thread.start()
    _, code, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - begin
    ended.set()
    thread.join()
    child.returncode = os.waitstatus_to_exitcode(code)
    if child.returncode != 0:
        sys.exit(f"{command[0]} failed with {child.returncode}")
    return wall, usage.ru_utime + usage.ru_stime, peak
