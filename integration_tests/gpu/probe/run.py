"""One run of scripts/gpu_probe: where things are, what was run already, and the time that is left."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import rfx_trace
from probe.question import ROOT, NotAnswered, OutOfTime
from probe.traces import armed_steps

WORKLOAD = str(ROOT / "integration_tests" / "gpu" / "workload.py")


class Probe:
    """One run of this script: where things are, what was run already, and the time that is left."""

    def __init__(self, options):
        self.options = options
        self.out = pathlib.Path(options.out).resolve()
        self.raw = self.out / "raw"
        self.build = pathlib.Path(options.build).resolve()
        self.python = os.environ.get("PYTHON") or shutil.which("python3") or "/usr/bin/python3"
        self.deadline = time.monotonic() + options.minutes * 60
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("RFINJECT_")}
        self.commands = []  # of the question that is being answered
        self.count = 0
        self.done = {}
        if options.simulated:
            self.steps, self.size, self.device = 60, 64, str(self.build / "integration_tests" / "simulated_gpu")
            self.environment["SIM_REAL_CUPTI"] = str(self.cuda_include().parent / "lib64")
            self.environment["PATH"] = str(self.stand_ins()) + os.pathsep + self.environment.get("PATH", "")
        else:
            self.steps, self.size, self.device = 600, 4096, "cuda"

    def cuda_include(self):
        cache = (self.build / "CMakeCache.txt").read_text(encoding="utf-8", errors="replace")
        match = re.search(r"^RFINJECT_CUDA_INCLUDE_DIR:PATH=(.*)$", cache, re.M)
        return pathlib.Path(match.group(1) if match else "/usr/local/cuda/include")

    def stand_ins(self):
        """Programs that print what NVIDIA's would; only what is parsed below."""
        folder = self.out / "stand-ins"
        folder.mkdir(parents=True, exist_ok=True)
        query = ("#!/bin/sh\ncase \"$*\" in\n"
                 "*-lms*) while kill -0 $PPID; do echo \"$(date '+%Y/%m/%d %H:%M:%S').000, 1500\"; sleep 0.1; done ;;\n"
                 "*--query-gpu*) echo 'Simulated GPU, 580.00, 40960, 1500, 1215, 8.0, Disabled' ;;\n"
                 "*) echo 'GPU 0: Simulated GPU' ;;\nesac\n")
        ncu = ("#!/bin/sh\ncat <<'CSV'\n"
               "\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n"
               "\"0\",\"forward_scale\",\"dram__bytes_read.sum\",\"byte\",\"256\"\n"
               "\"0\",\"forward_scale\",\"dram__bytes_write.sum\",\"byte\",\"256\"\nCSV\n")
        for name, text in (("nvidia-smi", query), ("ncu", ncu)):
            (folder / name).write_text(text, encoding="utf-8")
            (folder / name).chmod(0o755)
        return folder

    def tool(self, name):
        path = shutil.which(name, path=self.environment.get("PATH"))
        if path is None:
            raise NotAnswered("no %s here" % name)
        return path

    def run(self, name, command, limit, environment=None, user=None):
        """(exit code or None when the limit was passed, output); all of it goes to raw/ too."""
        left = self.deadline - time.monotonic()
        if left < 3:
            raise OutOfTime("the time was up")
        limit = min(limit, left)
        self.raw.mkdir(parents=True, exist_ok=True)
        self.count += 1
        self.commands.append(" ".join(["%s=%s" % pair for pair in (environment or {}).items()] + command))
        log = self.raw / ("%02d-%s.txt" % (self.count, name))
        began = time.monotonic()
        with open(log, "w", encoding="utf-8") as file:
            file.write("$ %s\n" % self.commands[-1])
            file.flush()
            try:
                process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                           env=dict(self.environment, **(environment or {})), cwd=str(self.out),
                                           start_new_session=True, user=user)
            except (OSError, subprocess.SubprocessError) as error:
                raise NotAnswered("%s: %s" % (command[0], error)) from None
            try:
                code = process.wait(limit)
            except subprocess.TimeoutExpired:
                code = None
            self.end_group(process)
            file.write("\n# exit code %s after %.1f s\n" % (code, time.monotonic() - began))
        text = log.read_text(encoding="utf-8", errors="replace").split("\n", 1)[1]
        return code, text[:text.rindex("\n# exit code")]

    @staticmethod
    def end_group(process):
        """Ends what is left of the session that `process` leads; its id cannot be reused before wait() returns."""
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        process.wait()

    def workload(self, name, *arguments, size=None, steps=None):
        return [self.python, "-B", WORKLOAD, name, "--device", self.device, "--size", str(size or self.size),
                "--steps", str(steps or self.steps), *arguments]

    def plain(self, name, *arguments, limit=60, **sizes):
        """The workload alone: (exit code, output, records of its log)."""
        log = self.out / ("plain-%d.json" % (self.count + 1))
        code, text = self.run("plain-" + name, self.workload(name, *arguments, "--log", str(log), **sizes), limit)
        return code, text, read_log(log)

    def measured(self, name, *arguments, limit=90, environment=None, user=None, **sizes):
        """The workload under rfinject: (exit code, output, records of its log, trace or None)."""
        folder = self.out / ("trace-%d" % (self.count + 1))
        folder.mkdir(exist_ok=True)
        if user is not None:
            folder.chmod(0o777)
        log = folder / "log.json"
        command = [str(self.build / "bin" / "rfinject"), "-o", str(folder) + "/"]
        command += self.workload(name, *arguments, "--log", str(log), **sizes)
        settings = dict({"RFINJECT_LOG": "2"}, **(environment or {}))
        code, text = self.run("measured-" + name, command, limit, settings, user)
        traces = rfx_trace.read_traces(str(folder), strict=False)
        return code, text, read_log(log), traces[0] if traces else None

    def once(self, key, function):
        """Runs that several questions look at."""
        if key not in self.done:
            before = len(self.commands)
            value = function()
            self.done[key] = (value, self.commands[before:])
        else:
            self.commands += self.done[key][1]
        return self.done[key][0]

    def train_plain(self):
        return self.once("plain", lambda: self.plain("train"))

    def train_measured(self):
        code, text, log, trace = self.once("train", lambda: self.measured("train",
                                                                          environment={"RFINJECT_OVERHEAD": "5"}))
        if trace is None:
            raise NotAnswered("no trace was written (exit code %s): %s" % (code, last_line(text)))
        return code, text, log, trace

    def counters(self):
        """What the first runs fall back to: PM sampling must not be the reason that nothing else is answered."""
        try:
            code, _, _, trace = self.train_measured()
        except NotAnswered:
            return {"RFINJECT_MODE": "range"}
        return {} if code == 0 and armed_steps(trace) else {"RFINJECT_MODE": "range"}

    def train_armed(self):
        """As many armed steps as can be had, and the SM clock meanwhile."""
        def go():
            clocks = self.out / ("clocks-%d.csv" % (self.count + 1))
            with open(clocks, "w", encoding="utf-8") as file:
                watcher = subprocess.Popen([self.tool("nvidia-smi"), "--query-gpu=timestamp,clocks.sm",
                                            "--format=csv,noheader,nounits", "-lms", "100"], stdout=file,
                                           stderr=subprocess.DEVNULL, start_new_session=True, env=self.environment)
                try:
                    time.sleep(0.5)
                    result = self.measured("train", environment=dict({"RFINJECT_OVERHEAD": "50"}, **self.counters()))
                    time.sleep(0.5)
                finally:
                    self.end_group(watcher)
            return result + (read_clocks(clocks),)
        return self.once("armed", go)

    def gemm(self, dtype):
        sizes = {} if self.options.simulated else {"steps": 150}
        environment = dict({"RFINJECT_OVERHEAD": "20"}, **self.counters())
        return self.once("gemm " + dtype, lambda: self.measured("gemm", "--dtype", dtype, environment=environment,
                                                                **sizes))


def read_log(path):
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError):
        return []


def read_clocks(path):
    """[(seconds since the epoch, MHz)]"""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        match = re.match(r"(\d+/\d+/\d+ \d+:\d+:\d+)\.(\d+), (\d+)", line)
        if match:
            when = time.mktime(time.strptime(match.group(1), "%Y/%m/%d %H:%M:%S")) + int(match.group(2)) / 1000
            found.append((when, int(match.group(3))))
    return found


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "(no output)"
