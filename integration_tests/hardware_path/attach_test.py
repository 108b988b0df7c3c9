"""`rfinject attach` on programs that run on a GPU: CUPTI is subscribed late, and given back at the end.

What is measured is what is measured from the start. The simulated CUPTI admits one subscriber, as the real one, so that a
second attachment shows that the first has left.
"""
import collections
import importlib.util
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import unittest

import gpu
import hardware_path_test as suite
import rfx_trace

sys.path.insert(0, str(gpu.HERE.parent / "libtorch"))

STEPS = 200
CYCLES = int(os.environ.get("RFINJECT_ATTACH_CYCLES", 2))
SEED = int(os.environ.get("RFINJECT_ATTACH_SEED", 1))


def launches(trace):
    """By layer, phase and kernel."""
    found = collections.Counter()
    for number, key in trace.keys.items():
        layer = trace.layers.get(key.get("layer", 0), {}).get("path", "")
        found[layer, rfx_trace.PHASES[key.get("phase", 0)], trace.names.get(key.get("kernel", 0), "")] += trace.launches.get(number, 0)
    return found


class Attach(unittest.TestCase):
    maxDiff = 4000

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="rfinject-attach-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.stop = self.path("stop")
        self.variables = gpu.environment(suite.usual()[1], suite.usual()[0], devices=2, RFINJECT_OVERHEAD=50,
                                         PYTHONWARNINGS="ignore",
                                         TORCHINDUCTOR_COMPILE_THREADS=1, TORCHINDUCTOR_CACHE_DIR=self.path("inductor"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, *command):
        process = subprocess.Popen([*map(str, command)], env=self.variables, text=True, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        first = process.stdout.readline()
        self.assertEqual(first, "ready\n", first or process.stderr.read())
        return process

    def program(self, way, *launcher):
        return [gpu.PYTHON, *launcher, gpu.PROGRAMS / "attached.py", way, self.stop]

    def cli(self, *words):
        result = subprocess.run([suite.RFINJECT, *map(str, words)], text=True, capture_output=True, timeout=300, env=self.variables)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def traces(self, name):
        """By rank."""
        path = pathlib.Path(self.path(name))
        return sorted(rfx_trace.read_traces(path) if path.is_dir() else [rfx_trace.read_trace(path)],
                      key=lambda trace: trace.run.get("rank", []))

    def flop(self, name):
        """Model FLOP, by layer and phase."""
        report = json.loads(self.cli("report", self.path(name), "--format", "json"))
        return {(row["layer"], row["phase"]): row["model_flop"] for row in report["layer_phases"]}

    def end(self, process):
        open(self.stop, "w").close()
        out, errors = process.communicate(timeout=300)
        self.assertEqual((process.returncode, out, errors), (0, "trained\n", ""))
        os.unlink(self.stop)

    def tasks(self, process):
        return sorted((int(task.name), (task / "comm").read_text()) for task in pathlib.Path(f"/proc/{process.pid}/task").iterdir())

    def check(self, command, tier="A", end=None):
        """Twice, after which it is detached by itself; then at random moments; and what is measured from the start."""
        process = self.start(*command)
        before = self.tasks(process)
        for name in ("one/", "two/"):
            self.cli("attach", "--overhead", 50, "--steps", STEPS, "--report", "-o", self.path(name), process.pid)
        self.assertEqual(self.tasks(process), before)
        chance = random.Random(f"{SEED} {command[1:]}")
        for cycle in range(CYCLES):
            time.sleep(chance.random() * 0.1)
            self.cli("attach", "--wait", 300, "-o", self.path(f"cycle{cycle}/"), process.pid)
            time.sleep(chance.random() * 0.1)
            self.cli("detach", "--wait", 300, process.pid)
        self.assertEqual(self.tasks(process), before)
        (end or self.end)(process)
        started = self.start(suite.RFINJECT, "--skip", 10, "--steps", STEPS, "--kill", "-q", "-o", self.path("started/"), *command)
        started.wait(timeout=300)
        expected = self.traces("started/")
        for name in ("one/", "two/"):
            found = self.traces(name)
            self.assertEqual(len(found), len(expected))
            for trace, same in zip(found, expected):
                self.assertEqual((trace.source, trace.run["collector"], trace.tier), ("measured", suite.usual()[2], tier))
                self.assertEqual((trace.drops, trace.end["reason"]), ({}, "detached"))
                self.assertEqual(launches(trace), launches(same))
                counted = {name for row in trace.rows() for name, value in row.items() if name.startswith("rf.") and value}
                self.assertIn("rf.time", counted)
            self.assertEqual(self.flop(name), self.flop("started/"))

    def test_what_is_measured_is_what_is_measured_from_the_start(self):
        self.check(self.program("plain"))

    def test_compiled(self):
        self.check(self.program("compiled"))

    def test_ranks(self):
        self.check(self.program("ddp", gpu.HERE.parent / "forked_ranks.py", 2))

    def test_libtorch(self):
        from programs import build

        def end(process):
            out, errors = process.communicate(timeout=300)
            self.assertEqual((process.returncode, errors), (0, ""), out)

        libraries = pathlib.Path(importlib.util.find_spec("torch").origin).parent / "lib"
        self.check([os.environ["ON_SIMULATED_GPU"], libraries, build("resnet", shared=True), 0, 0, 0, "cuda"], tier="E", end=end)


if __name__ == "__main__":
    reason = suite.unavailable()
    if reason is not None:
        print(f"note: skipped: {reason}")
        sys.exit(77)
    unittest.main()
