"""C++ programs on libtorch that are attached to, detached from and attached to again, at random moments: they compute what
they compute without, and what is measured is what is measured from the start.

More, by hand: RFINJECT_ATTACH_CYCLES=50 and RFINJECT_ATTACH_SEED=2.
"""

import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import time
import unittest

from processes import GPU, HERE, RFINJECT, TIMEOUT_S, TestCase

sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE.parent / "libtorch"))
import rfx_trace  # noqa: E402

try:
    from programs import ENVIRONMENT, build, flags_of_torch  # noqa: E402
except ImportError:
    print("note: no torch in this interpreter: its C++ programs are skipped")
    sys.exit(77)

CYCLES = int(os.environ.get("RFINJECT_ATTACH_CYCLES", 2))
SEED = int(os.environ.get("RFINJECT_ATTACH_SEED", 1))


class AttachLibtorch(TestCase):

    def setUp(self):
        super().setUp()
        self.environment.update(OMP_NUM_THREADS="1")

    def program(self, *arguments, **variables):
        process = self.start(build("resnet"), 0, *arguments, variables=variables)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def attach(self, process, *options, **kwargs):
        return self.cli("attach", "--estimate", GPU, *options, process.pid, **kwargs)

    def detach(self, process):
        return self.cli("detach", "--wait", TIMEOUT_S, process.pid)

    def end_as_alone(self, process, *arguments):
        """It has computed what it computes without rfinject."""
        printed = self.end(process).splitlines()[-1]
        alone = subprocess.run([build("resnet"), printed.split()[0], *map(str, arguments)], env=ENVIRONMENT, capture_output=True,
                               text=True, timeout=TIMEOUT_S)
        self.assertEqual(alone.stdout, printed + "\n")

    def has_library(self, process):
        return "librfinject.so" in pathlib.Path(f"/proc/{process.pid}/maps").read_text()

    def rows(self, trace):
        report = json.loads(self.cli("report", trace, "--format", "json").stdout)
        rows = {(row["layer"], row["phase"]): [row[what] for what in ("flop", "model_flop", "dram_bytes", "launches")]
                for row in report["layer_phases"]}
        return rows, report["steps"]

    def check(self, *arguments, lost=()):
        """`lost` is what its trace may say that it lacks."""
        chance = random.Random(f"{SEED} {arguments}")
        process = self.program(*arguments)
        for cycle in range(CYCLES):
            time.sleep(chance.random() * 0.1)
            self.attach(process, "--wait", TIMEOUT_S, "-o", f"{cycle}.rfx")
            time.sleep(chance.random() * 0.1)
            self.detach(process)
        self.end_as_alone(process, *arguments)
        for trace in rfx_trace.read_traces(self.folder):
            self.assertEqual((trace.tier, set(trace.drops) - set(lost)), ("E", set()))

    def test_plain(self):
        self.check()

    def test_validation(self):
        self.check(2)

    def test_threads_in_inference_mode(self):
        """They make launches faster than anybody writes them."""
        self.check(0, 4, lost=["launches: ring full"])

    def test_same_report_as_from_the_start(self):
        """Twice, of ten steps each, after which it is detached by itself."""
        started = self.start(RFINJECT, "--estimate", GPU, "--skip", 1, "--steps", 10, "-q", "-o", "started.rfx", build("resnet"), 20)
        self.end(started)
        started = self.rows("started.rfx")
        self.assertEqual(started[1], 10)
        process = self.program()
        threads = sorted(os.listdir(f"/proc/{process.pid}/task"))
        for trace in ("one.rfx", "two.rfx"):
            said = self.attach(process, "--steps", 10, "--report", "-o", trace)
            self.assertIn("10 steps", said.stdout)
            self.assertEqual(self.rows(trace), started)
        self.assertEqual(sorted(os.listdir(f"/proc/{process.pid}/task")), threads)
        self.assertIn("is not attached to it", self.cli("detach", process.pid, expect=1).stderr)
        self.end_as_alone(process)

    def calls(self, process):
        """{address: what it holds}, of the words of the program's own object that lead into libtorch's code."""
        pieces = []
        for line in pathlib.Path(f"/proc/{process.pid}/maps").read_text().splitlines():
            addresses, rights, *_, path = (line + " ").split(maxsplit=5)
            pieces.append((*(int(end, 16) for end in addresses.split("-")), rights, path.strip()))
        torch = [(begin, end) for begin, end, rights, path in pieces if "x" in rights and "libtorch" in path]
        found = {}
        with open(f"/proc/{process.pid}/mem", "rb") as memory:
            for begin, end, rights, path in pieces:
                if path == os.path.realpath(build("resnet")) and "x" not in rights:
                    memory.seek(begin)
                    words = struct.unpack(f"{(end - begin) // 8}Q", memory.read(end - begin))
                    found.update((begin + 8 * i, word) for i, word in enumerate(words) if any(a <= word < b for a, b in torch))
        return found

    def test_calls_lead_where_they_led(self):
        process = self.program()
        before = self.calls(process)
        self.assertGreater(len(before), 30)
        for _ in range(CYCLES):
            self.attach(process)
            self.detach(process)
        after = self.calls(process)
        self.assertEqual({address: after.get(address) for address in before}, before)

    def test_inference_for_a_time(self):
        """It is one step, which ends with the time."""
        process = self.program(-1)
        self.attach(process, "--for", "1s", "--report", "-o", "one.rfx")
        self.assertIn("is not attached to it", self.cli("detach", process.pid, expect=1).stderr)
        self.assertEqual(self.rows("one.rfx")[1], 1)
        self.end_as_alone(process, -1)

    def test_twice(self):
        process = self.program()
        self.attach(process)
        self.assertIn("is attached to it already", self.attach(process, expect=1).stderr)
        self.detach(process)

    def test_two_commands_at_once(self):
        process = self.program()
        for _ in range(CYCLES):
            commands = [subprocess.Popen([RFINJECT, "attach", "--estimate", GPU, "-q", "--wait", "1", str(process.pid)],
                                         cwd=self.folder, env=self.environment, text=True, stderr=subprocess.PIPE)
                        for _ in range(3)]
            said = [command.communicate()[1] for command in commands]
            self.assertEqual(sorted(command.returncode for command in commands), [0, 1, 1], said)
            self.detach(process)
        self.end_as_alone(process)

    def test_program_that_does_not_call_libtorch(self):
        """It is left alone, and nothing happens later."""
        process = self.program()

        def wait():
            process.stdin.write("w")
            process.stdin.flush()

        wait()
        self.assertEqual(process.stdout.readline(), "waits\n")
        said = self.attach(process, "--wait", 1, expect=1).stderr
        self.assertIn("was left as it was: none of its threads called libtorch within 1s", said)
        wait()
        wait()
        self.assertEqual(process.stdout.readline(), "waits\n")
        self.assertFalse(self.has_library(process))
        wait()
        self.attach(process)
        self.assertTrue(self.has_library(process))
        self.end_as_alone(process)

    def test_child_that_is_forked_before_the_answer(self):
        """It has the request in its memory, too."""
        process = self.program()
        process.stdin.write("w")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), "waits\n")
        before = pathlib.Path(f"/proc/{process.pid}/maps").read_text()
        command = subprocess.Popen([RFINJECT, "attach", "--estimate", GPU, "-q", "--wait", str(TIMEOUT_S), str(process.pid)],
                                   cwd=self.folder, env=self.environment, text=True, stderr=subprocess.PIPE)
        self.addCleanup(command.stderr.close)
        self.addCleanup(command.wait)
        self.addCleanup(command.kill)
        self.wait_for_request(process, before)
        process.stdin.write("f")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), "child 0\n")
        self.assertEqual((command.communicate()[1], command.returncode), ("", 0))
        self.assertTrue(self.has_library(process))
        self.end_as_alone(process)

    def test_program_that_ends_while_attached(self):
        process = self.program()
        self.attach(process, "-o", "one.rfx")
        trace = self.folder / "one.rfx"
        while not trace.exists() or len(rfx_trace.read_trace(trace, strict=False).steps) < 3:
            time.sleep(0.05)
        self.end_as_alone(process)
        self.assertGreater(self.rows("one.rfx")[1], 0)
        self.assertEqual(rfx_trace.read_trace(trace).end["reason"], "exit")

    def test_disabled(self):
        process = self.program(RFINJECT_DISABLE="1")
        self.assertIn("RFINJECT_DISABLE=1", self.attach(process, expect=1).stderr)


if __name__ == "__main__":
    if flags_of_torch() is None:
        print("note: no C++ headers of this torch here: its C++ programs are skipped")
        sys.exit(77)
    unittest.main()
