"""Programs that are attached to, detached from and attached to again, at random moments: they compute what they compute
without, and what is measured is what is measured from the start.

More, by hand: RFINJECT_ATTACH_CYCLES=50 and RFINJECT_ATTACH_SEED=2.
"""

import ctypes
import errno
import importlib.util
import json
import os
import pathlib
import random
import re
import signal
import struct
import subprocess
import sys
import time
import unittest

from processes import GPU, HERE, PYTHON, TIMEOUT_S, TestCase

sys.path.insert(0, str(HERE.parent))
import rfx_trace  # noqa: E402
from prefork import Prefork  # noqa: E402
from torchrun import torchrun  # noqa: E402

CYCLES = int(os.environ.get("RFINJECT_ATTACH_CYCLES", 2))
SEED = int(os.environ.get("RFINJECT_ATTACH_SEED", 1))
PROGRAMS = HERE / "programs.py"
# Without importing torch.
IS_TORCH_2 = pathlib.Path(importlib.util.find_spec("torch").origin).with_name("_inductor").exists()
# What is lost of a step that compiles, also where the program was started with rfinject.
TRACED = ["operators on tensors without readable storage"]


def threads(process):
    return sorted(os.listdir(f"/proc/{process.pid}/task"))


def children(process):
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
        return [int(word) for word in file.read().split()]


def forbid_ptrace():
    """For this process and what it starts: seccomp(2), with a program of the kernel's packet filter."""
    load, jump_if_equal, give, allow, fail = 0x20, 0x15, 0x06, 0x7fff0000, 0x00050000
    program = b"".join(struct.pack("HBBI", *line) for line in (
        (load, 0, 0, 0),  # the number of the call
        (jump_if_equal, 0, 1, 101), (give, 0, 0, fail | errno.EPERM), (give, 0, 0, allow)))
    text = ctypes.create_string_buffer(program)
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(text))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, set_seccomp, filter_mode = 38, 22, 2
    if libc.prctl(no_new_privileges, 1, 0, 0, 0) != 0 or libc.prctl(set_seccomp, filter_mode, header, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


class Attach(TestCase):

    with_torch = None  # a process that has torch, whose children are the programs

    @classmethod
    def tearDownClass(cls):
        if cls.with_torch is not None:
            cls.with_torch.close()

    def prefork(self):
        if Attach.with_torch is None:
            Attach.with_torch = Prefork([PYTHON, "-B"], self.environment)
        return Attach.with_torch

    def start_child(self, path, *arguments, **variables):
        """A program that is ready."""
        process = self.prefork().start(str(path), *arguments, cwd=self.folder, **variables)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def program(self, way, **variables):
        return self.start_child(PROGRAMS, way, **variables)

    def text(self, text, end="import os\nsys.stdout.flush()\nos._exit(0)\n", **variables):
        """A program of this text. By its end it does without taking down Python and torch, which costs more than the rest."""
        path = self.folder / "program.py"
        path.write_text(f"import sys\n{text}\n{end}")
        return self.start_child(path, **variables)

    def attach(self, process, *options, **kwargs):
        return self.cli("attach", "--estimate", GPU, *options, process.pid, **kwargs)

    def detach(self, process):
        return self.cli("detach", "--wait", TIMEOUT_S, process.pid)

    def check_alone(self, printed, way):
        """It is to be what the program prints without rfinject."""
        _, alone = self.prefork().run(str(PROGRAMS), way, printed.split()[0])
        self.assertEqual((alone.returncode, alone.stdout), (0, "ready\n" + printed), alone.stderr)

    def end_as_alone(self, process, way):
        self.check_alone(self.end(process), way)

    def rows(self, *trace):
        """What the run has: FLOP, bytes and launches by layer and phase, and the number of steps."""
        report = json.loads(self.cli("report", *trace, "--format", "json").stdout)
        rows = {(row["layer"], row["phase"]): [row[what] for what in ("flop", "model_flop", "dram_bytes", "launches")]
                for row in report["layer_phases"]}
        return rows, report["steps"]

    def wait_for_files(self, folder, count):
        while len(found := list((self.folder / folder).glob("*.rfx"))) < count:
            time.sleep(0.05)
        return found

    def wait_for_steps(self, trace, steps):
        path = self.folder / trace
        while not path.exists() or len(rfx_trace.read_trace(path, strict=False).steps) < steps:
            time.sleep(0.05)

    def check(self, way, lost=()):
        """Cycles of attaching and detaching while the program runs. `lost` is what its trace may say that it lacks."""
        chance = random.Random(f"{SEED} {way}")
        process = self.program(way)
        for cycle in range(CYCLES):
            time.sleep(chance.random() * 0.1)
            self.attach(process, "--wait", TIMEOUT_S, "-o", f"{cycle}.rfx")
            time.sleep(chance.random() * 0.1)
            self.detach(process)
        self.end_as_alone(process, way)
        # Children that the program forks leave none.
        self.assertLessEqual({trace.name for trace in self.folder.glob("*.rfx*")}, {f"{one}.rfx" for one in range(CYCLES)})
        for trace in rfx_trace.read_traces(self.folder):
            self.assertEqual((trace.tier, set(trace.drops) - set(lost)), ("A", set()))

    def test_plain(self):
        self.check("plain")

    def test_autocast(self):
        self.check("autocast")

    def test_accumulate(self):
        self.check("accumulate")

    def test_checkpoint(self):
        self.check("checkpoint")

    def test_closure(self):
        self.check("closure")

    def test_adversaries(self):
        self.check("adversaries")

    def test_loader(self):
        self.check("loader")

    def test_c_code(self):
        self.check("c_code")

    def test_threads(self):
        self.check("threads")

    def test_joined(self):
        self.check("joined")

    def test_forking(self):
        self.check("forking")

    def test_signals(self):
        self.check("signals")

    def test_waiting(self):
        self.check("waiting")

    def test_sleeping(self):
        self.check("sleeping")

    def test_notebook(self):
        self.check("notebook")

    def test_hooks(self):
        self.check("hooks")

    def test_modes(self):
        self.check("modes")

    def needs_compile(self):
        if not IS_TORCH_2:
            print("note: this torch has no torch.compile")
            self.skipTest("this torch has no torch.compile")

    def test_compiled(self):
        self.needs_compile()
        self.check("compiled", TRACED)

    def test_inside_of_a_compiled_function(self):
        """Dynamo looks at all frames that begin there; ours are none of the program's."""
        self.needs_compile()
        process = self.text("""if True:
            import select, torch
            graphs = []
            def keep(graph, inputs):
                graphs.append(graph)
                return graph
            def wait():
                print('ready', flush=True)
                while not select.select([sys.stdin], [], [], 0.01)[0]:
                    pass
            @torch.compile(backend=keep)
            def run(x):
                y = x + 1
                wait()
                return y * 2
            print(run(torch.ones(2)).tolist(), len(graphs))""", PYTHONWARNINGS="ignore")
        self.attach(process)
        self.detach(process)
        self.assertEqual(self.end(process), "[4.0, 4.0] 2\n")

    def test_in_the_middle_of_what_hears_of_operators(self):
        """None of it hears of the operators that are tried while rfinject attaches."""
        program = """if True:
            import select, torch, torch.utils.checkpoint, warnings
            from torch.autograd import forward_ad
            from torch.overrides import TorchFunctionMode
            warnings.simplefilter('ignore')  # torch.jit has been deprecated
            def wait():
                print('ready', flush=True)
                while not select.select([sys.stdin], [], [], 0.01)[0]:
                    pass
                sys.stdin.readline()
            class Heard(TorchFunctionMode):
                def __torch_function__(self, function, types, args=(), kwargs=None):
                    heard.append(function.__name__)
                    return function(*args, **(kwargs or {}))
            def half(x):
                y = x.sin()
                wait()
                return y.exp()
            def value():
                return torch.linspace(0, 1, 4, requires_grad=True)
            def gradient(y, x):
                y.sum().backward()
                print(x.grad.tolist())
            heard = []
            with Heard():
                print(half(value()).tolist(), heard)
            for reentrant in True, False:
                x = value()
                gradient(torch.utils.checkpoint.checkpoint(half, x, use_reentrant=reentrant), x)
            saved = []
            with torch.autograd.graph.saved_tensors_hooks(lambda tensor: saved.append(tensor) or tensor, lambda tensor: tensor):
                x = value()
                y = half(x)
            gradient(y, x)
            print(len(saved))
            with forward_ad.dual_level():
                print(forward_ad.unpack_dual(half(forward_ad.make_dual(torch.ones(2), torch.ones(2)))).tangent.tolist())
            torch.manual_seed(1)
            wait()
            print(torch.rand(2).tolist())
            print(torch.jit.trace(half, torch.ones(2), check_trace=False).graph)"""

        def run(attach):
            process, lines = self.text(program), []
            while True:
                attach(process)
                process.stdin.write("\n")
                process.stdin.flush()
                while (line := process.stdout.readline()) not in ("", "ready\n"):
                    lines.append(line)
                if line == "":
                    self.assertEqual(self.end(process), "")
                    return lines

        refused = []

        def attach(process):
            try:
                self.attach(process, "--wait", 1)
            except AssertionError as error:
                refused.append(str(error))
                return
            self.detach(process)

        self.assertEqual(run(attach), run(lambda process: None))
        computed_again = 2  # in a backward pass, by the two checkpoints
        self.assertEqual(len(refused), computed_again + (not IS_TORCH_2), refused)
        for said in refused:
            self.assertIn("it is in a backward pass or a trace", said)

    def test_inductor(self):
        if CYCLES < 10:
            self.skipTest("compiles for long; RFINJECT_ATTACH_CYCLES=10 and more have it")
        self.needs_compile()
        self.check("inductor", TRACED)

    def test_ranks_of_torchrun(self):
        """By the launcher, by the job's name and by a rank."""
        words = torchrun(2, self.folder / "log", "--rdzv_id", "my-job")
        launcher = self.start(PYTHON, "-B", *words, PROGRAMS, "ddp")
        self.assertTrue(launcher.stdout.readline().endswith("ready\n"))
        ranks = children(launcher)
        self.assertEqual(len(ranks), 2)
        chance = random.Random(f"{SEED} ddp")
        for cycle in range(max(3, CYCLES)):
            words = ([launcher.pid], ["--job", "my-job"], ["--job", ranks[1]])[cycle % 3]
            said = self.cli("attach", "--estimate", GPU, "-o", f"{cycle}/", *words).stderr
            self.assertEqual(re.findall(r"\(rank (\d)\)", said), ["0", "1"])
            time.sleep(chance.random() * 0.1)
            self.cli("detach", *words)
            traces = rfx_trace.read_traces(self.folder / str(cycle))
            self.assertEqual(sorted(trace.run["rank"] for trace in traces), [[0], [1]])
        self.cli("attach", "--estimate", GPU, "--steps", 5, "--report", "-o", "one/", launcher.pid)
        attached = self.rows("one/")
        self.assertEqual(attached[1], 2 * 5)  # of both ranks
        self.cli("attach", "--estimate", GPU, "--ranks", 1, "--steps", 5, "--report", "-o", "second/", launcher.pid)
        self.assertEqual([trace.run["rank"] for trace in rfx_trace.read_traces(self.folder / "second")], [[1]])
        self.assertIn("no process with PyTorch on this machine is one of job", self.cli("attach", "--job", "other", expect=1).stderr)
        out, errors = launcher.communicate()
        self.assertEqual(launcher.returncode, 0, errors)
        self.check_alone(out.partition(":")[2], "ddp")
        words = torchrun(2, self.folder / "log", "--rdzv_id", "other-job")
        started = self.start(os.environ["RFINJECT"], "--estimate", GPU, "--estimate-on", "cpu", "--skip", 3, "--steps", 5, "-q",
                             "-o", "started/", PYTHON, "-B", *words, PROGRAMS, "ddp")
        self.assertTrue(started.stdout.readline().endswith("ready\n"))
        for trace in self.wait_for_files("started", 2):
            self.wait_for_steps(trace, 5)
        started.communicate()
        self.assertEqual(attached, self.rows("started/"))

    def test_same_report_as_from_the_start(self):
        """Twice, of twenty steps each, after which it is detached by itself."""
        started = self.start(os.environ["RFINJECT"], "--estimate", GPU, "--estimate-on", "cpu", "--skip", 1, "--steps", 20, "-q",
                             "-o", "started.rfx", PYTHON, "-B", PROGRAMS, "plain")
        self.assertEqual(started.stdout.readline(), "ready\n")
        self.assertIn("was started with rfinject", self.attach(started, expect=1).stderr)
        self.wait_for_steps("started.rfx", 20)
        self.end(started)
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

    def command(self, *words):
        """The command, while it runs."""
        command = subprocess.Popen([os.environ["RFINJECT"], *map(str, words)], cwd=self.folder, env=self.environment, text=True,
                                   stderr=subprocess.PIPE)
        self.addCleanup(command.stderr.close)
        self.addCleanup(command.wait)
        self.addCleanup(command.kill)
        return command

    def test_two_commands_at_once(self):
        process = self.program("plain")
        for _ in range(3 * CYCLES):
            commands = [self.command("attach", "--estimate", GPU, "-q", process.pid) for _ in range(3)]
            said = [command.communicate()[1] for command in commands]
            self.assertEqual(sorted(command.returncode for command in commands), [0, 1, 1], said)
            for one in said:
                self.assertRegex(one, "^$|rfinject is attached to it already|is traced by process")
            self.detach(process)
        self.end_as_alone(process, "plain")

    def test_command_that_is_interrupted(self):
        """It takes its request back."""
        process = self.text("import sys, torch\nprint('ready', flush=True)\nsys.stdin.read()\n"
                            "print('librfinject.so' in open('/proc/self/maps').read())")
        maps = pathlib.Path(f"/proc/{process.pid}/maps")
        before = maps.read_text()
        command = self.command("attach", "--estimate", GPU, "--wait", TIMEOUT_S, process.pid)
        while maps.read_text() == before:  # until there is a place for the text
            pass
        command.send_signal(signal.SIGINT)
        command.communicate()
        self.assertEqual(command.returncode, -signal.SIGINT)
        self.assertEqual(self.end(process), "False\n")

    def test_program_that_ends_while_attached(self):
        process = self.program("plain")
        self.attach(process, "-o", "one.rfx")
        self.wait_for_steps("one.rfx", 3)  # the first is the one that ran when it was attached to; it counts for nothing
        self.end_as_alone(process, "plain")
        self.assertGreater(self.rows("one.rfx")[1], 0)
        self.assertEqual(rfx_trace.read_trace(self.folder / "one.rfx").end["reason"], "exit")

    def test_long_backward_pass(self):
        process = self.text("""if True:
            import select, sys, torch
            def wait(gradient):
                print('ready', flush=True)
                while not select.select([sys.stdin], [], [], 0.01)[0]:
                    pass
            leaf = torch.ones(2, requires_grad=True)
            leaf.register_hook(wait)
            leaf.sum().backward()
            print(leaf.grad.tolist())""")
        said = self.attach(process, "--wait", 1, expect=1).stderr
        self.assertIn("it is in a backward pass or a trace, whenever it was looked at for 1s (--wait", said)
        self.assertEqual(self.end(process), "[1.0, 1.0]\n")

    def test_mode_that_is_being_left(self):
        """In torch 1.13 no operator runs between two lines of it, and so none of ours would."""
        if IS_TORCH_2:
            self.skipTest("modes are left at once in torch 2")
        process = self.text("""if True:
            import select, torch
            from torch.utils._python_dispatch import TorchDispatchMode
            class Mode(TorchDispatchMode):
                def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                    return function(*args, **(kwargs or {}))
            with Mode():
                mode = torch._C._pop_torch_dispatch_stack()
                print('ready', flush=True)
                while not select.select([sys.stdin], [], [], 0.01)[0]:
                    pass
                torch._C._push_on_torch_dispatch_stack(mode)
            print(torch.ones(1).item())""")
        said = self.attach(process, "--wait", 1, expect=1).stderr
        self.assertIn("it is entering or leaving a mode, whenever it was looked at", said)
        self.assertEqual(self.end(process), "1.0\n")

    def test_only_thread_that_cannot_be_stopped(self):
        """A process that starts another (vfork) goes on when the other has its program. Here that waits for a file."""
        os.mkfifo(self.folder / "fifo")
        process = self.text("""if True:
            import os, select, sys, torch
            print('ready', flush=True)
            child = os.posix_spawn(sys.executable, [sys.executable, '-c', ''], os.environ, file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, 'fifo', os.O_RDONLY, 0)])
            print(os.waitpid(child, 0)[1], flush=True)
            while not select.select([sys.stdin], [], [], 0.01)[0]:
                pass""")
        self.addCleanup(lambda: os.close(os.open(self.folder / "fifo", os.O_RDWR)))
        while "D (disk sleep)" not in pathlib.Path(f"/proc/{process.pid}/status").read_text():
            pass
        said = self.attach(process, "--wait", 1, expect=1).stderr
        self.assertIn("no thread of it can be stopped, whenever it was looked at for 1s (--wait", said)
        command = self.command("attach", "--estimate", GPU, "-q", "--wait", TIMEOUT_S, "-o", "one.rfx", process.pid)
        open(self.folder / "fifo", "w").close()
        said = command.communicate()
        self.assertEqual(command.returncode, 0, said)
        self.assertEqual(self.end(process), "0\n")

    def test_program_that_is_ending(self):
        """The interpreter takes its modules down, and runs what objects of the program do last."""
        process = self.text("""if True:
            import sys, time, torch
            class Last:
                def __del__(self, time=time.monotonic, print=print):
                    print('ready', flush=True)
                    end = time() + 1
                    while time() < end:
                        pass
            sys.modules['__main__'].last = Last()""", end="")
        self.assertIn("was left as it was", self.attach(process, "--wait", 0, expect=1).stderr)
        self.assertEqual(self.end(process), "")

    def test_main_thread_that_does_not_come_back(self):
        """It is left alone, and nothing happens later."""
        process = self.text("import time, torch\nprint('ready', flush=True)\ntime.sleep(2.5)\n"
                            "print('librfinject.so' in open('/proc/self/maps').read())")
        said = self.attach(process, "--wait", 1, expect=1)
        self.assertIn("was left as it was: its main thread did not come back to Python within 1s", said.stderr)
        self.assertEqual(self.end(process), "False\n")

    def test_main_thread_that_waits_for_a_child(self):
        """As torch.multiprocessing.spawn does. The child is named, and can be attached to."""
        process = self.text("""if True:
            import os, select, torch
            child = os.fork()
            if child == 0:
                print('ready', flush=True)
                while not select.select([sys.stdin], [], [], 0.01)[0]:
                    pass
                os._exit('librfinject.so' in open('/proc/self/maps').read())
            print(os.WEXITSTATUS(os.waitpid(child, 0)[1]))""")
        child, = children(process)
        said = self.attach(process, "--wait", 1, expect=1).stderr
        self.assertTrue(said.endswith(f"; of the processes that it started these have PyTorch: {child}\n"), said)
        self.cli("attach", "--estimate", GPU, child)
        self.assertEqual(self.end(process), "1\n")

    def test_child_that_is_forked_before_the_answer(self):
        """It has the request in its memory, too. Here another thread forks it, while the main thread waits."""
        process = self.text("""if True:
            import os, sys, threading, torch, warnings
            warnings.simplefilter('ignore')  # since Python 3.12: of forks where there are threads
            ends = os.pipe()
            def fork():
                sys.stdin.readline()
                child = os.fork()
                if child == 0:
                    for _ in range(100_000):
                        pass
                    os._exit('librfinject.so' in open('/proc/self/maps').read())
                print('child', os.waitpid(child, 0)[1], flush=True)
                os.write(ends[1], b'x')
            threading.Thread(target=fork).start()
            print('ready', flush=True)
            os.read(ends[0], 1)
            print('librfinject.so' in open('/proc/self/maps').read(), flush=True)
            sys.stdin.read()  # until the command has seen the answer""")
        before = pathlib.Path(f"/proc/{process.pid}/maps").read_text()
        command = self.command("attach", "--estimate", GPU, "-q", "--wait", TIMEOUT_S, process.pid)
        self.wait_for_request(process, before)
        process.stdin.write("\n")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), "child 0\n")
        self.assertEqual((command.communicate()[1], command.returncode), ("", 0))
        self.assertEqual(self.end(process), "True\n")

    def test_main_thread_that_comes_back(self):
        process = self.text("""if True:
            import select, time, torch
            print('ready', flush=True)
            time.sleep(1)
            while not select.select([sys.stdin], [], [], 0.01)[0]:
                pass
            print('librfinject.so' in open('/proc/self/maps').read())""")
        self.attach(process, "--wait", TIMEOUT_S)
        self.assertEqual(self.end(process), "True\n")

    def test_no_room_for_the_librarys_thread_local_memory(self):
        """The loader refuses the library, and the program goes on."""
        process = self.text("""if True:
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
            print(copies > 0)""", TLS_HOG=os.environ["TLS_HOG"])
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
        inside, = children(outer)
        self.cli("attach", "--estimate", GPU, "--steps", 5, "--report", "-o", "one.rfx", inside)
        self.assertEqual(self.rows("one.rfx")[1], 5)
        entered = ["nsenter", "--target", str(inside), "--mount", "--pid", "--wd=" + str(self.folder), os.environ["RFINJECT"]]
        said = subprocess.run([*entered, "attach", "--estimate", GPU, "--steps", "5", "--report", "-o", "two.rfx", "1"],
                              env=self.environment, capture_output=True, text=True, timeout=TIMEOUT_S)
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertEqual(self.rows("two.rfx"), self.rows("one.rfx"))

    def test_filter_that_forbids_ptrace(self):
        """As containers have where the kernel is old."""
        process = self.program("plain")
        said = self.attach(process, expect=1, preexec_fn=forbid_ptrace).stderr
        self.assertIn("a seccomp filter forbids ptrace here", said)
        self.end_as_alone(process, "plain")

    def test_disabled(self):
        process = self.program("plain", RFINJECT_DISABLE="1")
        self.assertIn("RFINJECT_DISABLE=1", self.attach(process, expect=1).stderr)


if __name__ == "__main__":
    unittest.main()
