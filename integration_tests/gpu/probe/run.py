"""One run of scripts/gpu_probe: where things are, the time that is left, and the answers so far."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import rfx_trace

ROOT = pathlib.Path(__file__).resolve().parents[3]
BATTERY = str(ROOT / "integration_tests" / "gpu" / "battery.py")


class NotAnswered(Exception):
    """Why something cannot be answered here; str() goes into the table."""


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "(no output)"


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


class Probe:
    def __init__(self, options):
        self.options = options
        self.out = pathlib.Path(options.out).resolve()
        self.build = pathlib.Path(options.build).resolve()
        self.python = os.environ.get("PYTHON") or shutil.which("python3") or "/usr/bin/python3"
        self.deadline = time.monotonic() + options.minutes * 60
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("RFINJECT_")}
        self.machine, self.rows, self.command, self.count = {}, [], "", 0
        self.steps, self.device = 300, "cuda"
        if options.simulated:
            self.steps, self.device = 1500, str(self.build / "integration_tests" / "simulated_gpu")
            self.environment["SIM_REAL_CUPTI"] = str(self.cuda_include().parent / "lib64")

    def cuda_include(self):
        cache = (self.build / "CMakeCache.txt").read_text(encoding="utf-8", errors="replace")
        match = re.search(r"^RFINJECT_CUDA_INCLUDE_DIR:PATH=(.*)$", cache, re.M)
        return pathlib.Path(match.group(1) if match else "/usr/local/cuda/include")

    def left(self):
        return self.deadline - time.monotonic()

    def run(self, name, command, limit, environment=None):
        """(exit code or None when the limit was passed, output); all of it goes to raw/ too."""
        if self.left() < 3:
            raise NotAnswered("the time was up")
        raw = self.out / "raw"
        raw.mkdir(parents=True, exist_ok=True)
        self.count += 1
        self.command = " ".join(["%s=%s" % pair for pair in (environment or {}).items()] + [str(word) for word in command])
        log = raw / ("%02d-%s.txt" % (self.count, name))
        began = time.monotonic()
        with open(log, "w", encoding="utf-8") as file:
            file.write("$ %s\n" % self.command)
            file.flush()
            try:
                process = subprocess.Popen([str(word) for word in command], stdout=file, stderr=subprocess.STDOUT,
                                           stdin=subprocess.DEVNULL, env=dict(self.environment, **(environment or {})),
                                           cwd=str(self.out), start_new_session=True)
            except (OSError, subprocess.SubprocessError) as error:
                file.write("%s\n# exit code none after 0.0 s\n" % error)
                raise NotAnswered("%s: %s" % (command[0], error)) from None
            try:
                code = process.wait(min(limit, self.left()))
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

    def battery(self, name, programs, *arguments, before=(), environment=None, steps=None, limit=240):
        """Runs the programs in one process, behind the words `before`. {program: its line of the log}, output."""
        log = self.out / (name + ".json")
        log.unlink(missing_ok=True)
        command = [*before, self.python, "-B", BATTERY, ",".join(programs), "--log", log, "--device", self.device,
                   "--steps", steps or self.steps, *arguments]
        code, text = self.run(name, command, limit, environment)
        lines = []
        try:
            lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
        except (OSError, ValueError):
            pass  # it ended before the first program, or inside of a line
        if not lines:
            raise NotAnswered("exit code %s: %s" % (code, last_line(text)))
        return {line["program"]: line for line in lines}, text

    def measured(self, name, programs, environment=None, **rest):
        """The same under rfinject. (programs, Trace or None, its chunks)."""
        folder = self.out / (name + "-trace")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        command = [self.build / "bin" / "rfinject", "-o", str(folder) + "/"]
        seen, _ = self.battery(name, programs, before=command,
                               environment={"RFINJECT_LOG": "2", **(environment or {})}, **rest)
        files = rfx_trace.trace_files(str(folder))
        if not files:
            return seen, None, []
        chunks = []
        try:
            chunks.extend(rfx_trace.read_chunks(files[0]))
        except rfx_trace.TraceError:
            pass  # what comes before the damage counts
        return seen, rfx_trace.read_trace(files[0], strict=False), chunks

    def answer(self, block, what, seen):
        """Prints an answer, and writes all there are: whoever ends us early has what there is."""
        print("%s  %s: %s" % (block, what, seen), flush=True)
        self.rows.append({"block": block, "what": what, "seen": seen, "command": self.command})
        with open(self.out / "answers.md", "w", encoding="utf-8") as file:
            file.write("# Answers of scripts/gpu_probe\n\n")
            if self.options.simulated:
                file.write("**On the simulated GPU: this says that the script works, and nothing about any GPU.**\n\n")
            file.write("| machine | |\n|---|---|\n")
            for name, value in self.machine.items():
                file.write("| %s | %s |\n" % (name, cell(value)))
            file.write("\n| block | what | what was seen | command (whole output in raw/) |\n|---|---|---|---|\n")
            for row in self.rows:
                file.write("| %s | %s | %s | `%s` |\n" % tuple(map(cell, row.values())))
        with open(self.out / "answers.json", "w", encoding="utf-8") as file:
            json.dump({"simulated": self.options.simulated, "machine": self.machine, "answers": self.rows}, file, indent=1)
