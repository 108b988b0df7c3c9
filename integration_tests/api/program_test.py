#!/usr/bin/env python3
"""rfinject.range, start and stop in a program that is profiled, and `rfinject control` from outside. support.py has the usage."""
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

import support
from support import OPTIONS, ROOT

BEGINNING = f"""
import sys
sys.path.insert(0, {str(ROOT / "python")!r})
import rfinject, torch
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
data = torch.ones(4, 8)
def step(loss=lambda output: output.exp().sum()):
    optimizer.zero_grad()
    loss(model(data)).backward()
    optimizer.step()
"""


class ProgramTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="rfinject-program-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def command(self, program, *options):
        file = self.folder / "program.py"
        file.write_text(BEGINNING + textwrap.dedent(program))
        return [OPTIONS.rfinject, *options, "--estimate", "A100-SXM4-40GB", "-o", f"{self.folder}/out/", OPTIONS.python, file]

    def run_program(self, program, *options):
        """The profile of the program, and what it printed."""
        result = subprocess.run(self.command(program, *options), capture_output=True, text=True, timeout=240)
        self.assertEqual(result.returncode, 0, result.stderr)
        return self.load(), result

    def load(self):
        import rfinject
        return rfinject.load(self.folder / "out")


class Range(ProgramTest):
    def by_layer(self, profile):
        return {(row["model"], row["layer"], row["phase"]): row["launches"] for row in profile.reports[0]["layer_phases"]}

    def test_it_names_forward_and_backward(self):
        profile, _ = self.run_program("""
            def loss(output):
                with rfinject.range("loss"):
                    squares = output * output
                    with rfinject.range("norm"):
                        return squares.sqrt().sum()
            for _ in range(3):
                step(loss)
            assert rfinject.is_injected()
        """)
        layers = self.by_layer(profile)
        for layer in ("", "norm"):  # the root of a range, as of a model, has no name of its own
            for phase in ("forward", "backward"):
                self.assertGreater(layers.get(("loss", layer, phase), 0), 0, (layer, phase, layers))
        # The module keeps what is its own, and steps are what they were.
        self.assertIn(("Linear", "", "forward"), layers)
        self.assertEqual(profile.reports[0]["steps"], 3)
        self.assertEqual({row["op"] for row in profile.rows("op") if row["model"] == "loss" and row["phase"] == "forward"},
                         {"aten::mul", "aten::sqrt", "aten::sum"})

    def test_modules_inside_keep_their_names_and_make_the_steps(self):
        plain, _ = self.run_program("for _ in range(3): step()")
        profile, _ = self.run_program("""
            @rfinject.range("all")
            def one():
                step()
            for _ in range(3):
                one()
        """)
        layers, wanted = self.by_layer(profile), self.by_layer(plain)
        for phase in ("forward", "backward"):
            self.assertEqual(layers["Linear", "", phase], wanted["Linear", "", phase])
        self.assertEqual(profile.reports[0]["steps"], 3)
        # Filling tensors for a loss takes no FLOP. What runs before the first model is in no model, or in the range.
        self.assertEqual(profile.summary["flop"], plain.summary["flop"])

    def test_inside_of_a_module_and_of_the_backward_it_does_nothing(self):
        profile, _ = self.run_program("""
            class Inner(torch.nn.Module):
                def forward(self, x):
                    with rfinject.range("never"):
                        return x.exp()
            model = torch.nn.Sequential(model, Inner())
            def hook(gradient):
                with rfinject.range("never"):
                    return gradient * 2
            def loss(output):
                output.register_hook(hook)
                return output.sum()
            for _ in range(3):
                step(loss)
        """)
        self.assertNotIn("never", {row["model"] for row in profile.rows("layer")})
        self.assertIn(("Sequential", "1", "forward"), self.by_layer(profile))

    def test_ranges_that_end_out_of_order_leave_nothing_behind(self):
        profile, _ = self.run_program("""
            def generator():
                with rfinject.range("generator"):
                    yield
            for _ in range(3):
                one = generator()
                next(one)
                with rfinject.range("outer"):
                    one.close()  # ends while "outer" is the innermost
                    outer = data * 2
                after = data.exp()  # in no range
                step()
        """)
        for row in profile.rows("op"):
            if row["op"] == "aten::exp" and row["phase"] == "other":
                self.assertIsNone(row["model"])
        self.assertIn("Linear", {row["model"] for row in profile.rows("layer")})

    def test_names_are_bounded(self):
        profile, _ = self.run_program("""
            for number in range(3000):
                with rfinject.range("x" * 1000 + str(number) if number % 2 else f"step {number}"):
                    pass
            step()
        """)
        self.assertIn("too-many-ranges", [said["id"] for said in profile.reports[0]["diagnostics"]])
        self.assertLess((self.folder / "out").stat().st_size + sum(f.stat().st_size for f in (self.folder / "out").iterdir()), 10**6)


class StartAndStop(ProgramTest):
    def test_steps_outside_are_in_no_sum(self):
        plain, _ = self.run_program("for _ in range(4): step()")
        profile, result = self.run_program("""
            for number in range(10):
                if number == 3:
                    rfinject.stop()   # the fourth is being begun
                if number == 9:
                    rfinject.start()
                step()
            print("done")
        """)
        self.assertEqual(result.stdout, "done\n")
        self.assertEqual(profile.reports[0]["steps"], 4)
        for column in ("launches", "flop", "model_flop"):
            self.assertEqual(profile.summary[column], plain.summary[column])
        self.assertIn("6 steps are in no sum", subprocess.run([OPTIONS.rfinject, "report", self.folder / "out"],
                                                               capture_output=True, text=True).stdout)

    def test_start_stopped(self):
        profile, _ = self.run_program("""
            for number in range(6):
                if number == 3:
                    rfinject.start()
                step()
        """, "--start-stopped")
        self.assertEqual(profile.reports[0]["steps"], 2)

    def test_a_program_that_is_not_profiled(self):
        program = self.folder / "plain.py"
        program.write_text(f"import sys\nsys.path.insert(0, {str(ROOT / 'python')!r})\n" + textwrap.dedent("""
            import rfinject
            rfinject.stop(); rfinject.start()
            with rfinject.range("x") as one, rfinject.range("y"):
                pass
            @rfinject.range("z")
            def double(x): return 2 * x
            print(double(2), rfinject.is_injected())
            try: rfinject.range(3)
            except TypeError as error: print(error)
        """))
        result = subprocess.run([sys.executable, program], capture_output=True, text=True)
        self.assertEqual(result.stdout.splitlines(), ["4 False", "a range wants a name"], result.stderr)


class Control(ProgramTest):
    STEPS_ON_DEMAND = """
        # A line on stdin is a step, and is answered when it has ended.
        for line in sys.stdin:
            step()
            print("stepped", flush=True)
    """

    def control(self, *words):
        result = subprocess.run([OPTIONS.rfinject, "control", *map(str, words)], capture_output=True, text=True, timeout=60)
        return result.returncode, result.stdout + result.stderr

    def test_a_running_job(self):
        # The program has a thread of its own, so that the library also has one, and looks for the file while no step
        # ends.
        program = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n" + \
            textwrap.dedent(self.STEPS_ON_DEMAND)
        with subprocess.Popen(self.command(program, "-q"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              bufsize=1) as job:
            def step(times):
                for _ in range(times):
                    job.stdin.write("\n")
                    self.assertEqual(job.stdout.readline(), "stepped\n")

            step(3)
            self.assertEqual(self.control(job.pid, "stop"), (0, f"process {job.pid}: measures no further step\n"))
            step(5)  # the first of them was begun before
            self.assertEqual(self.control(job.pid, "start"), (0, f"process {job.pid}: measures from its next step on\n"))
            step(3)  # the first of these was, too
            # The command says what the trace says, which is written a moment later.
            said = ""
            deadline = time.monotonic() + 30
            while "6 steps measured, 5 left out" not in said and time.monotonic() < deadline:
                code, said = self.control(job.pid, "status")
                self.assertEqual(code, 0, said)
            self.assertRegex(said, rf"^process {job.pid}: measuring, 6 steps measured, 5 left out; /.*\.rfx\n$")
            self.assertEqual([path.suffix for path in (self.folder / "out").iterdir()], [".rfx"])
            job.stdin.close()
            self.assertEqual(job.wait(60), 0)
        self.assertEqual(self.load().reports[0]["steps"], 6)

    def test_a_job_of_one_thread_looks_between_steps(self):
        program = "torch.set_num_threads(1)\n" + textwrap.dedent(self.STEPS_ON_DEMAND)
        with subprocess.Popen(self.command(program, "-q"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
                              env={**os.environ, "OMP_NUM_THREADS": "1"}) as job:
            def step():
                job.stdin.write("\n")
                self.assertEqual(job.stdout.readline(), "stepped\n")

            step()
            path, = (self.folder / "out").glob("*.rfx")
            request = path.with_name(path.name + ".control")
            request.touch(0o600)
            request.write_text("stop\n")
            stepped = 0
            while request.exists():  # a second at most
                step()
                stepped += 1
            for _ in range(3):
                step()
            job.stdin.close()
            self.assertEqual(job.wait(60), 0)
        # The step that runs when the library looks for the file is the last. Where torch has threads of its own, a
        # thread of the library looks, which may be in the middle of a step.
        self.assertIn(self.load().reports[0]["steps"], (1 + stepped, 1 + stepped + 1))

    def test_a_file_that_is_no_request_is_taken_away(self):
        program = "torch.set_num_threads(1)\n" + textwrap.dedent(self.STEPS_ON_DEMAND)
        with subprocess.Popen(self.command(program), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, bufsize=1, env={**os.environ, "OMP_NUM_THREADS": "1"}) as job:
            def step():
                job.stdin.write("\n")
                self.assertEqual(job.stdout.readline(), "stepped\n")

            step()
            path, = (self.folder / "out").glob("*.rfx")
            request = path.with_name(path.name + ".control")
            for text, mode in (("s" * 100_000, 0o600), ("stop\n", 0o666)):
                request.write_text(text)
                request.chmod(mode)
                deadline = time.monotonic() + 30
                while request.exists() and time.monotonic() < deadline:
                    step()
                self.assertFalse(request.exists(), oct(mode))
            step()
            job.stdin.close()
            said = job.stderr.read()
            self.assertEqual(job.wait(60), 0)
        self.assertEqual(said.count(".control"), 1, said)

    def test_what_is_no_job(self):
        self.assertEqual(self.control(os.getpid(), "stop"), (1, f"rfinject: process {os.getpid()} and what it started write no trace, or none yet\n"))
        for words, wanted in ((("x", "stop"), "'x' is no number of a process"), ((1, "pause"), "'pause': there are start, stop and status"),
                              ((1,), "two words are wanted"), ((2**31 - 1, "stop"), "there is no process 2147483647")):
            code, said = self.control(*words)
            self.assertIn(code, (1, 2))
            self.assertIn(wanted, said)


if __name__ == "__main__":
    support.main()
