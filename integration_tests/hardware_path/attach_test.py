"""`rfinject attach` on a program that runs on a GPU: CUPTI is subscribed late, and given back at the end.

What is measured is what is measured from the start. The simulated CUPTI admits one subscriber, as the real one, so that a
second attachment shows that the first has left.
"""
import collections
import os
import subprocess
import sys
import tempfile
import unittest

import gpu
import hardware_path_test as suite
import rfx_trace

STEPS = 200
PROGRAM = """if True:
    import torch
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 30 * 30, 4)).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    x = torch.ones(4, 3, 32, 32, device="cuda")

    def step():
        loss = net(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    for _ in range(4):
        step()
    print("ready", flush=True)
    while not os.path.exists(sys.argv[1]):
        step()
    print("trained")
"""


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
        with open(self.path("train.py"), "w") as file:
            file.write("import os, sys\n" + PROGRAM)
        self.variables = gpu.environment(suite.usual()[1], suite.usual()[0], RFINJECT_OVERHEAD=50)

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, *command):
        process = subprocess.Popen([*command, gpu.PYTHON, self.path("train.py"), self.stop], env=self.variables, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        first = process.stdout.readline()
        self.assertEqual(first, "ready\n", first or process.stderr.read())
        return process

    def attach(self, process, *options):
        result = subprocess.run([suite.RFINJECT, "attach", "--overhead", "50", *options, str(process.pid)], text=True,
                                capture_output=True, timeout=300, env=self.variables)
        self.assertEqual(result.returncode, 0, result.stderr)

    def end(self, process):
        open(self.stop, "w").close()
        out, errors = process.communicate(timeout=300)
        self.assertEqual((process.returncode, out), (0, "trained\n"), errors)
        os.unlink(self.stop)
        return errors

    def test_what_is_measured_is_what_is_measured_from_the_start(self):
        process = self.start(suite.RFINJECT, "--skip", "10", "--steps", str(STEPS), "--kill", "-q", "-o", self.path("started.rfx"))
        process.communicate(timeout=300)
        started = rfx_trace.read_trace(self.path("started.rfx"))
        process = self.start()
        tasks = sorted(os.listdir(f"/proc/{process.pid}/task"))
        for name in ("one.rfx", "two.rfx"):
            self.attach(process, "--steps", str(STEPS), "--report", "-o", self.path(name))
            trace = rfx_trace.read_trace(self.path(name))
            self.assertEqual((trace.source, trace.run["collector"], trace.tier), ("measured", suite.usual()[2], "A"))
            self.assertEqual((trace.drops, trace.end["reason"]), ({}, "detached"))
            self.assertEqual(launches(trace), launches(started))
            counted = {name for row in trace.rows() for name, value in row.items() if name.startswith("rf.") and value}
            self.assertIn("rf.time", counted)
        self.assertEqual(sorted(os.listdir(f"/proc/{process.pid}/task")), tasks)
        self.assertEqual(self.end(process), "")


if __name__ == "__main__":
    reason = suite.unavailable()
    if reason is not None:
        print(f"note: skipped: {reason}")
        sys.exit(77)
    unittest.main()
