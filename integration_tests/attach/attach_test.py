"""Programs that are attached to, detached from and attached to again, at random moments: they compute what they compute
without, and what is measured is what is measured from the start.

More, by hand: RFINJECT_ATTACH_CYCLES=50 and RFINJECT_ATTACH_SEED=2.
"""

import json
import os
import random
import time
import unittest

from processes import GPU, HERE, PYTHON, TIMEOUT_S, TestCase

CYCLES = int(os.environ.get("RFINJECT_ATTACH_CYCLES", 3))
SEED = int(os.environ.get("RFINJECT_ATTACH_SEED", 1))
PROGRAMS = HERE / "programs.py"


def threads(process):
    return sorted(os.listdir(f"/proc/{process.pid}/task"))


class Attach(TestCase):

    def program(self, way, steps, **options):
        process = self.start(PYTHON, "-B", PROGRAMS, way, steps, **options)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def attach(self, process, *options, **kwargs):
        return self.cli("attach", "--estimate", GPU, *options, process.pid, **kwargs)

    def detach(self, process):
        return self.cli("detach", process.pid)

    def alone(self, way, steps):
        """What the program prints without rfinject."""
        return self.end(self.start(PYTHON, "-B", PROGRAMS, way, steps, "fast")).removeprefix("ready\n")

    def rows(self, *trace):
        """What the run has: FLOP, bytes and launches by layer and phase, and the number of steps."""
        report = json.loads(self.cli("report", *trace, "--format", "json").stdout)
        rows = {(row["layer"], row["phase"]): [row[what] for what in ("flop", "model_flop", "dram_bytes", "launches")]
                for row in report["layer_phases"]}
        return rows, report["steps"]

    def check(self, way, steps):
        """Cycles of attaching and detaching while the program runs."""
        chance = random.Random(f"{SEED} {way}")
        process = self.program(way, steps)
        done = 0
        while done < CYCLES and process.poll() is None:
            time.sleep(chance.random() * 0.1)
            self.attach(process, "-o", f"{done}.rfx")
            time.sleep(chance.random() * 0.1)
            self.detach(process)
            done += 1
        self.assertEqual(done, CYCLES, "the program ended too early")
        self.assertEqual(self.end(process), self.alone(way, steps))

    def test_plain(self):
        self.check("plain", 600)

    def test_loader(self):
        self.check("loader", 300)

    def test_c_code(self):
        self.check("c_code", 100)

    def test_threads(self):
        self.check("threads", 300)

    def test_forking(self):
        self.check("forking", 100)

    def test_signals(self):
        self.check("signals", 500)

    def test_waiting(self):
        self.check("waiting", 500)

    def test_same_report_as_from_the_start(self):
        """Twice, of twenty steps each, after which it is detached by itself."""
        self.cli("run", "--estimate", GPU, "--estimate-on", "cpu", "--skip", 1, "--steps", 20, "-o", "started.rfx", PYTHON,
                 "-B", PROGRAMS, "plain", 40, "fast")
        started = self.rows("started.rfx")
        self.assertEqual(started[1], 20)
        process = self.program("plain", 4000)
        before = threads(process)
        for trace in ("one.rfx", "two.rfx"):
            said = self.attach(process, "--steps", 20, "--report", "-o", trace)
            self.assertIn("20 steps", said.stdout)
            self.assertEqual(self.rows(trace), started)
        self.assertEqual(threads(process), before)
        self.assertIn("is not attached to it", self.cli("detach", process.pid, expect=1).stderr)

    def test_for_a_time(self):
        process = self.program("plain", 4000)
        self.attach(process, "--for", "1s", "--report", "-o", "one.rfx")
        self.assertIn("is not attached to it", self.cli("detach", process.pid, expect=1).stderr)

    def test_twice(self):
        process = self.program("plain", 4000)
        self.attach(process)
        self.assertIn("is attached to it already", self.attach(process, expect=1).stderr)
        self.detach(process)
        self.attach(process, "--steps", 5, "--report")
        self.assertEqual(self.rows()[1], 5)  # of the latest run here

    def test_program_that_ends_while_attached(self):
        process = self.program("plain", 300)
        self.attach(process, "-o", "one.rfx")
        self.assertEqual(self.end(process), self.alone("plain", 300))
        self.assertGreater(self.rows("one.rfx")[1], 0)

    def test_program_that_is_ending(self):
        """The interpreter takes its modules down, and runs what objects of the program do last."""
        process = self.start(PYTHON, "-B", "-c", """if True:
            import time, torch
            class Last:
                def __del__(self, time=time.monotonic, print=print):
                    print('ready', flush=True)
                    end = time() + 1
                    while time() < end:
                        pass
            last = Last()""")
        self.assertEqual(process.stdout.readline(), "ready\n")
        self.assertIn("was left as it was", self.attach(process, "--wait", 0, expect=1).stderr)
        self.assertEqual(self.end(process), "")

    def test_main_thread_that_does_not_come_back(self):
        """It is left alone, and nothing happens later."""
        process = self.start(PYTHON, "-B", "-c", "import time, torch\nprint('ready', flush=True)\ntime.sleep(2.5)\n"
                             "print('rfinject' in open('/proc/self/maps').read())")
        process.stdout.readline()
        said = self.attach(process, "--wait", 1, expect=1)
        self.assertIn("was left as it was: its main thread did not come back to Python within 1s", said.stderr)
        self.assertEqual(self.end(process), "False\n")

    def test_main_thread_that_comes_back(self):
        process = self.start(PYTHON, "-B", "-c", "import time, torch\nprint('ready', flush=True)\ntime.sleep(1)\n"
                             "print('rfinject' in open('/proc/self/maps').read())")
        process.stdout.readline()
        self.attach(process, "--wait", TIMEOUT_S)
        self.assertEqual(self.end(process), "True\n")

    def test_started_with_rfinject(self):
        process = self.start(os.environ["RFINJECT"], "--estimate", GPU, "-q", PYTHON, "-B", PROGRAMS, "plain", 4000)
        process.stdout.readline()
        self.assertIn("was started with rfinject", self.attach(process, expect=1).stderr)

    def test_disabled(self):
        process = self.program("plain", 4000, variables={"RFINJECT_DISABLE": "1"})
        self.assertIn("RFINJECT_DISABLE=1", self.attach(process, expect=1).stderr)


if __name__ == "__main__":
    unittest.main()
