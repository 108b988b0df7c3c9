"""Programs that are attached to, detached from and attached to again, at random moments: they compute what they compute
without, and what is measured is what is measured from the start.

More, by hand: RFINJECT_ATTACH_CYCLES=50 and RFINJECT_ATTACH_SEED=2.
"""

import json
import os
import random
import subprocess
import sys
import time
import unittest

from processes import GPU, HERE, PYTHON, TIMEOUT_S, TestCase

sys.path.insert(0, str(HERE.parent))
import rfx_trace  # noqa: E402
from prefork import Prefork  # noqa: E402

CYCLES = int(os.environ.get("RFINJECT_ATTACH_CYCLES", 3))
SEED = int(os.environ.get("RFINJECT_ATTACH_SEED", 1))
PROGRAMS = HERE / "programs.py"


def threads(process):
    return sorted(os.listdir(f"/proc/{process.pid}/task"))


class Attach(TestCase):

    alone = None  # runs programs without rfinject, in children of a process that has torch

    @classmethod
    def tearDownClass(cls):
        if cls.alone is not None:
            cls.alone.close()

    def program(self, way, **options):
        process = self.start(PYTHON, "-B", PROGRAMS, way, **options)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def attach(self, process, *options, **kwargs):
        return self.cli("attach", "--estimate", GPU, *options, process.pid, **kwargs)

    def detach(self, process):
        return self.cli("detach", process.pid)

    def end_as_alone(self, process, way):
        """The process is to have printed what it prints without rfinject."""
        printed = self.end(process)
        if Attach.alone is None:
            Attach.alone = Prefork([PYTHON, "-B"], self.environment)
        _, alone = Attach.alone.run(str(PROGRAMS), way, printed.split()[0])
        self.assertEqual((alone.returncode, alone.stdout), (0, "ready\n" + printed), alone.stderr)

    def rows(self, *trace):
        """What the run has: FLOP, bytes and launches by layer and phase, and the number of steps."""
        report = json.loads(self.cli("report", *trace, "--format", "json").stdout)
        rows = {(row["layer"], row["phase"]): [row[what] for what in ("flop", "model_flop", "dram_bytes", "launches")]
                for row in report["layer_phases"]}
        return rows, report["steps"]

    def wait_for_steps(self, trace):
        # The first is the one that ran when the program was attached to; it counts for nothing.
        path = self.folder / trace
        while not path.exists() or len(rfx_trace.read_trace(path, strict=False).steps) < 3:
            time.sleep(0.05)

    def check(self, way):
        """Cycles of attaching and detaching while the program runs."""
        chance = random.Random(f"{SEED} {way}")
        process = self.program(way)
        for cycle in range(CYCLES):
            time.sleep(chance.random() * 0.1)
            self.attach(process, "-o", f"{cycle}.rfx")
            time.sleep(chance.random() * 0.1)
            self.detach(process)
        self.end_as_alone(process, way)
        # Children that the program forks leave none.
        self.assertLessEqual({trace.name for trace in self.folder.glob("*.rfx*")}, {f"{one}.rfx" for one in range(CYCLES)})
        for trace in rfx_trace.read_traces(self.folder):
            self.assertEqual((trace.tier, trace.drops), ("A", {}))

    def test_plain(self):
        self.check("plain")

    def test_loader(self):
        self.check("loader")

    def test_c_code(self):
        self.check("c_code")

    def test_threads(self):
        self.check("threads")

    def test_forking(self):
        self.check("forking")

    def test_signals(self):
        self.check("signals")

    def test_waiting(self):
        self.check("waiting")

    def test_hooks(self):
        self.check("hooks")

    def test_modes(self):
        self.check("modes")

    def test_same_report_as_from_the_start(self):
        """Twice, of twenty steps each, after which it is detached by itself."""
        self.cli("run", "--estimate", GPU, "--estimate-on", "cpu", "--skip", 1, "--steps", 20, "-o", "started.rfx", PYTHON,
                 "-B", PROGRAMS, "plain", 40)
        started = self.rows("started.rfx")
        self.assertEqual(started[1], 20)
        process = self.program("plain")
        before = threads(process)
        for trace in ("one.rfx", "two.rfx"):
            said = self.attach(process, "--steps", 20, "--report", "-o", trace)
            self.assertIn("20 steps", said.stdout)
            self.assertEqual(self.rows(trace), started)
        self.assertEqual(threads(process), before)
        self.assertIn("is not attached to it", self.cli("detach", process.pid, expect=1).stderr)

    def test_for_a_time(self):
        process = self.program("plain")
        self.attach(process, "--for", "1s", "--report", "-o", "one.rfx")
        self.assertIn("is not attached to it", self.cli("detach", process.pid, expect=1).stderr)

    def test_twice(self):
        process = self.program("plain")
        self.attach(process)
        self.assertIn("is attached to it already", self.attach(process, expect=1).stderr)
        self.detach(process)
        self.attach(process, "--steps", 5, "--report")
        self.assertEqual(self.rows()[1], 5)  # of the latest run here

    def test_program_that_ends_while_attached(self):
        process = self.program("plain")
        self.attach(process, "-o", "one.rfx")
        self.wait_for_steps("one.rfx")
        self.end_as_alone(process, "plain")
        self.assertGreater(self.rows("one.rfx")[1], 0)
        self.assertEqual(rfx_trace.read_trace(self.folder / "one.rfx").end["reason"], "exit")

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
                             "print('librfinject.so' in open('/proc/self/maps').read())")
        process.stdout.readline()
        said = self.attach(process, "--wait", 1, expect=1)
        self.assertIn("was left as it was: its main thread did not come back to Python within 1s", said.stderr)
        self.assertEqual(self.end(process), "False\n")

    def test_main_thread_that_comes_back(self):
        process = self.start(PYTHON, "-B", "-c", "import time, torch\nprint('ready', flush=True)\ntime.sleep(1)\n"
                             "print('librfinject.so' in open('/proc/self/maps').read())")
        process.stdout.readline()
        self.attach(process, "--wait", TIMEOUT_S)
        self.assertEqual(self.end(process), "True\n")

    def test_started_with_rfinject(self):
        process = self.start(os.environ["RFINJECT"], "--estimate", GPU, "-q", PYTHON, "-B", PROGRAMS, "plain")
        process.stdout.readline()
        self.assertIn("was started with rfinject", self.attach(process, expect=1).stderr)

    def test_no_room_for_the_librarys_thread_local_memory(self):
        """The loader refuses the library, and the program goes on."""
        process = self.start(PYTHON, "-B", "-c", """if True:
            import ctypes, os, select, shutil, sys, torch
            copies = 0
            try:
                while True:
                    shutil.copy(os.environ['TLS_HOG'], f'hog{copies}.so')
                    ctypes.CDLL(os.path.abspath(f'hog{copies}.so'))
                    copies += 1
            except OSError as error:
                assert 'static TLS' in str(error), error
            print('ready', flush=True)
            while not select.select([sys.stdin], [], [], 0.01)[0]:
                pass
            print(copies > 0)""", variables={"TLS_HOG": os.environ["TLS_HOG"]})
        self.assertEqual(process.stdout.readline(), "ready\n")
        self.assertIn("static TLS", self.attach(process, expect=1).stderr)
        self.assertEqual(self.end(process), "True\n")

    def test_other_namespaces(self):
        """From outside, and by a command that has entered them."""
        command = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
        if subprocess.run([*command, "true"], capture_output=True).returncode != 0:
            print("note: no namespaces can be made here")
            self.skipTest("no namespaces can be made here")
        outer = self.start(*command, PYTHON, "-B", PROGRAMS, "plain")
        self.assertEqual(outer.stdout.readline(), "ready\n")
        with open(f"/proc/{outer.pid}/task/{outer.pid}/children") as file:
            inside = int(file.read())
        self.cli("attach", "--estimate", GPU, "--steps", 5, "--report", "-o", "one.rfx", inside)
        self.assertEqual(self.rows("one.rfx")[1], 5)
        entered = ["nsenter", "--target", str(inside), "--mount", "--pid", "--wd=" + str(self.folder), os.environ["RFINJECT"]]
        said = subprocess.run([*entered, "attach", "--estimate", GPU, "--steps", "5", "--report", "-o", "two.rfx", "1"],
                              env=self.environment, capture_output=True, text=True, timeout=TIMEOUT_S)
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertEqual(self.rows("two.rfx"), self.rows("one.rfx"))

    def test_disabled(self):
        process = self.program("plain", variables={"RFINJECT_DISABLE": "1"})
        self.assertIn("RFINJECT_DISABLE=1", self.attach(process, expect=1).stderr)


if __name__ == "__main__":
    unittest.main()
