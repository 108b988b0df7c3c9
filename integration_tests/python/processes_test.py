"""Tests children, ends and threads of a training process, on real torch."""

import os
import signal
import subprocess
import tempfile
import time

import support

TRAIN = """
import os, sys, time
import torch
from torch import nn

if hasattr(torch, "_disable_dynamo") and "torch._dynamo" not in sys.modules:
    # The first optimizer of torch 2 imports it, which takes as long as importing torch.
    dynamo = sys.modules["torch._dynamo"] = torch._dynamo = type(sys)("torch._dynamo")
    dynamo.disable, dynamo.graph_break = lambda function, *_, **__: function, lambda *_, **__: None

def train(steps=3):
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()
    return model
"""


class Processes(support.TestCase):
    def steps(self, trace):
        return len(trace.steps)

    # --- Other ways in.

    def test_a_program_that_opens_libpython_itself_hears_why_there_is_no_trace(self):
        name = subprocess.run([support.PYTHON, "-c", "import sysconfig; print(sysconfig.get_config_var('INSTSONAME'))"],
                              stdout=subprocess.PIPE, universal_newlines=True).stdout.strip()
        if ".so" not in name:
            self.skipTest("this Python has no shared library")
        path = subprocess.run([support.PYTHON, "-c", "import sys; print(sys.path[1:])"], stdout=subprocess.PIPE,
                              universal_newlines=True).stdout.strip()
        command = [os.environ["DLOPEN_PYTHON"], name, "import sys; sys.path[:] = %s" % path + TRAIN +
                   "print(train()[0].weight.shape)"]
        plain = self.plain(command)
        self.assertEqual(plain.code, 0, plain.stderr)
        result = self.inject(command)
        self.assertEqual((result.code, result.stdout, result.files), (0, plain.stdout, []))
        self.assertEqual(result.stderr.count("\n"), plain.stderr.count("\n") + 1, result.stderr)
        self.assertIn("libpython", result.stderr)
        quiet = self.inject(command, RFINJECT_LOG="-1")
        self.assertEqual((quiet.code, quiet.stdout, quiet.stderr), (0, plain.stdout, plain.stderr))

    # --- Threads of ours.

    def test_a_program_of_one_thread_stays_one(self):
        path = self.write("program.py", TRAIN + """
train()
print(len(os.listdir("/proc/self/task")))
""")
        variables = {name + "_NUM_THREADS": "1" for name in ("OPENBLAS", "MKL", "OMP")}
        plain = self.plain([support.PYTHON, path], **variables)
        if plain.stdout != "1\n":
            self.skipTest("this torch has threads of its own: " + plain.stdout)
        for settings in ({}, {"RFINJECT_ESTIMATE": None}):
            with self.subTest(settings=settings):
                result = self.inject([support.PYTHON, path], **dict(variables, **settings))
                self.assertEqual((result.stdout, len(result.trace.steps)), ("1\n", 3), result.stderr)

    # --- Children.

    def test_training_in_children(self):
        for method in ("fork", "spawn", "forkserver"):
            with self.subTest(method=method):
                result = self.program(TRAIN + """
import multiprocessing
if __name__ == "__main__":
    context = multiprocessing.get_context(%r)
    train(2)
    children = [context.Process(target=train, args=(n,)) for n in (3, 4)]
    for child in children: child.start()
    for child in children: child.join()
    assert [child.exitcode for child in children] == [0, 0]
    train(1)
""" % method)
                self.assertEqual(sorted(map(self.steps, result.traces)), [3, 3, 4])
                self.assertEqual({len(trace.paths()) for trace in result.traces} - {4, 8}, set())
                ends = sorted(trace.end["reason"] for trace in result.traces)
                ids = [trace.ids for trace in result.traces]  # another one in each process, forked or not
                self.assertEqual([len(one) for one in ids], [1, 1, 1])
                self.assertEqual(len({one[0] for one in ids}), 3)
                self.assertRegex(ids[0][0], "^[0-9a-f]{32}$")
                self.assertEqual(ends, ["exit"] * 3 if method == "spawn" else ["_exit", "_exit", "exit"])

    def test_data_loader_workers_are_silent(self):
        for method, workers in (("fork", 2), ("spawn", 1), ("forkserver", 1)):  # each of the latter imports torch
            with self.subTest(method=method):
                result = self.program(TRAIN + """
import torch.utils.data
class Data(torch.utils.data.Dataset):
    def __init__(self):
        self.transform = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    def __len__(self):
        return 8
    def __getitem__(self, i):
        with torch.no_grad():
            return self.transform(torch.ones(3))
if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=%d, multiprocessing_context=%r)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in loader:
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
    print("done")
""" % (workers, method))
                self.assertEqual(result.stdout, "done\n")
                self.assertEqual(result.trace.paths(), [""])
                self.assertEqual(self.steps(result.trace), 4)
                self.assertEqual(len([line for line in result.stderr.splitlines() if "rfinject" in line]), 0)

    # --- Ends.

    def test_ends(self):
        bye = "import atexit\natexit.register(lambda: print('bye'))"
        thread = "import threading\nthreading.Thread(target=train, args=(2,)).start()"
        for end, reason, code, said in (("", "exit", 0, ""), ("sys.exit(3)", "exit", 3, ""),
                                        ("os._exit(5)", "_exit", 5, ""), ("raise ValueError('x')", "exit", 1, ""),
                                        ("raise KeyboardInterrupt", "exit", -signal.SIGINT, ""),
                                        (bye, "exit", 0, "bye\n"), (thread, "exit", 0, "")):
            with self.subTest(end=end):
                program = self.write("program.py", TRAIN + "train(2)\nprint('end', flush=True)\n" + end)
                result = self.inject([support.PYTHON, program])
                self.assertEqual((result.code, result.stdout), (code, "end\n" + said), result.stderr)
                self.assertEqual(result.trace.end["reason"], reason)
                self.assertEqual(result.trace.damage, "")
                self.assertGreaterEqual(self.steps(result.trace), 2)

    def test_killed(self):
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV):
            with self.subTest(signal=number):
                path = self.write("program.py", TRAIN + "train(2)\nprint('ready', flush=True)\n"
                                                        "while True: train(1); time.sleep(0.01)\n")
                output = tempfile.mkdtemp(dir=self.folder)
                process = subprocess.Popen([support.PYTHON, path], env=self.injected(output), stdout=subprocess.PIPE)
                try:
                    self.assertEqual(process.stdout.readline(), b"ready\n")
                    # A whole frame is in the file within a second or two; nothing tells the test when, so it looks.
                    for _ in range(600):
                        traces = support.rfx_trace.read_traces(output, strict=False)
                        if traces and traces[0].steps:
                            break
                        time.sleep(0.05)
                finally:
                    process.send_signal(number)
                    self.assertEqual(process.wait(), -number)
                    process.stdout.close()
                trace, = support.rfx_trace.read_traces(output)
                self.assertGreaterEqual(len(trace.steps), 1)
                self.assertEqual(trace.end, None)

    def test_signal_handlers_of_the_program_stay(self):
        self.both(TRAIN + """
import signal
train(1)
print(signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGSEGV))
signal.signal(signal.SIGTERM, lambda *_: (print("terminated"), sys.exit(9)))
os.kill(os.getpid(), signal.SIGTERM)
train(1)
""")

    def test_daemon_thread_in_a_module_at_the_end(self):
        # Before 3.14 the interpreter ends such a thread with pthread_exit where it next asks for the GIL, through our
        # frames. It must ask in Python's own code: in torch's noexcept functions that ends the process ("terminate called
        # without an active exception"), with us or without.
        result = self.both(TRAIN + """
import threading
started = threading.Event()
class Sleepy(nn.Module):
    def forward(self, x):
        started.set()
        while True:
            time.sleep(0.001)
class Slow(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.sleepy = Sleepy()
    def forward(self, x):
        return self.sleepy(self.fc(x))
train(1)
threading.Thread(target=Slow(), args=(torch.ones(1, 3),), daemon=True).start()
started.wait()
print("leaving")
""")
        self.assertEqual((result.code, result.trace.end["reason"]), (0, "exit"))

    def test_daemon_thread_that_loads_compiled_code_at_the_end(self):
        # What Inductor's objects say of the graph is asked for in Python's code.
        result = self.program(TRAIN + """
import sys, threading, types
asked = threading.Event()
class V:
    @property
    def graph(self):
        asked.set()
        while True:
            time.sleep(0.001)
train(1)
sys.modules["torch._inductor.virtualized"] = types.ModuleType("virtualized")
sys.modules["torch._inductor.virtualized"].V = V()
threading.Thread(target=compile, args=("AsyncCompile()", "generated.py", "exec"), daemon=True).start()
print(asked.wait(60))
""")
        self.assertEqual((result.code, result.stdout, result.trace.end["reason"]), (0, "True\n", "exit"))

    def test_polite_exit(self):
        result = self.program(TRAIN + """
import atexit
atexit.register(lambda: print("atexit"))
try:
    train(10 ** 9)
finally:
    print("finally")
""", RFINJECT_SKIP="1", RFINJECT_STEPS="2", RFINJECT_KILL="1")
        self.assertEqual(result.stdout, "finally\natexit\n")
        self.assertEqual(len([step for step in result.trace.steps if step.get("measured")]), 2)
        self.assertEqual(result.trace.end["reason"], "exit")

    def test_polite_exit_without_optimizer(self):
        result = self.program(TRAIN + """
model = nn.Linear(3, 2).eval()
with torch.no_grad():
    while True:
        model(torch.ones(2, 3))
""", RFINJECT_STEPS="3", RFINJECT_KILL="1")
        self.assertEqual(len([step for step in result.trace.steps if step.get("measured")]), 3)

    def test_polite_exit_that_is_refused(self):
        result = self.program(TRAIN + """
refused = 0
model = nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(50):
    try:
        optimizer.zero_grad()
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()
    except:
        refused += 1
print(refused)
""", RFINJECT_STEPS="2", RFINJECT_KILL="1")
        self.assertEqual(result.stdout, "3\n")
        self.assertIn("goes on", result.stderr)

    def test_facts(self):
        result = self.program(TRAIN + """
train(1)
print(sys.version.split()[0], torch.__version__, torch.version.cuda or "", sep="|")
""")
        trace, versions = result.trace, result.stdout.strip().split("|")
        self.assertEqual([trace.process.get(key, "") for key in ("python_version", "torch_version", "cuda_version")],
                         versions)
        self.assertEqual(trace.process["python_executable"], support.PYTHON)
        self.assertNotIn("torchvision_version", trace.process)
        self.assertEqual(trace.process["argv"][0], support.PYTHON)


class InChildren(support.ForkedTestCase):
    """For which it does not matter how their process began."""

    def test_transforms_without_parameters_do_not_make_a_trace(self):
        result = self.program(TRAIN + """
nn.Sequential(nn.ReLU(), nn.Flatten())(torch.ones(2, 3))
nn.MSELoss()(torch.ones(2), torch.ones(2))
""")
        self.assertEqual((result.files, result.stderr), ([], ""))

    def test_children_that_are_no_concern_of_ours(self):
        # The vfork child of a command that does not exist leaves through _exit, in the parent's memory.
        result = self.program(TRAIN + """
import subprocess
train(2)
for command in (["no-such-command-anywhere"], ["/bin/true"], ["/bin/sh", "-c", "exit 3"]):
    try:
        subprocess.run(command)
    except FileNotFoundError:
        pass
os.system("true")
pid = os.fork()
if pid == 0:
    os._exit(0)
os.waitpid(pid, 0)
pid = os.fork()
if pid == 0:
    sys.exit(0)
os.waitpid(pid, 0)
train(2)
""")
        self.assertEqual(len(result.trace.steps), 4)
        self.assertEqual(result.trace.end["reason"], "exit")

    def test_forward_in_threads(self):
        result = self.program(TRAIN + """
import threading
model = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
def work():
    for _ in range(50):
        model(torch.ones(2, 3)).sum().backward()
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
""")
        self.assertEqual(result.trace.paths(), ["", "0", "1"])
        self.assertEqual(self.ops(result.trace, "forward")[("Sequential", "1")], {"aten::tanh": 200})
        self.assert_all_attributed(result.trace)

    # A second thread of Python's keeps the GIL busy.
    def test_busy_python_thread(self):
        # A library that took the GIL for each operator would wait 5 ms each time while another thread is busy.
        program = TRAIN + """
import threading
done = False
def busy():
    while not done:
        sum(range(100))
threading.Thread(target=busy).start()
train(3)
times = []
for _ in range(7):
    start = time.perf_counter()
    train(2)
    times.append(time.perf_counter() - start)
done = True
print(min(times))
"""
        plain, injected = (float(self.in_child(program, injected).stdout) for injected in (False, True))
        # The least of them, because on a busy machine any may be interrupted; per-operator waits would be in all, and
        # make the ratio 20 or more.
        self.assertLess(injected / plain, 4)


if __name__ == "__main__":
    support.main()
