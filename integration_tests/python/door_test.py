"""Tests the way into a Python process. Needs no torch: a stand-in serves, so that
every interpreter that RFINJECT_OTHER_PYTHONS names is tried."""

import os
import shutil
import subprocess
import sys
import zipfile

import support

PYTHONS = [support.PYTHON] + support.OTHER_PYTHONS

MODEL = """
import sys
sys.path.insert(0, %r)
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(3, 4)
    def forward(self, x):
        return self.inner(x)
net = Net()
for _ in range(3):
    net(torch.Tensor(2, 3))
print("ran", sys.flags.isolated)
""" % support.FAKE_TORCH


class Door(support.TestCase):
    def assert_seen(self, result):
        self.assertEqual(result.code, 0, result.stderr)
        self.assertIn("ran", result.stdout)
        trace = result.trace
        self.assertEqual(trace.damage, "")
        self.assertEqual([(layer.get("path", ""), layer["class_name"]) for layer in trace.layers.values()],
                         [("", "Net"), ("inner", "Linear")])
        self.assertEqual(trace.layer("inner")["output_shape"], "f32[2,4]")
        self.assertEqual(trace.end["reason"], "exit")
        # This version's frames lie where injector/python/python_frames.cc says.
        self.assertNotIn("source-lines", trace.diagnostic_ids())
        self.assertNotIn("calls-unknown", trace.diagnostic_ids())
        return trace

    def test_flags(self):
        path = self.write("program.py", MODEL)
        for python in PYTHONS:
            for flags in ([], ["-I"], ["-S"], ["-E"], ["-s"], ["-I", "-S"], ["-O"], ["-X", "dev"],
                          ["-X", "importtime"]):
                with self.subTest(python=python, flags=flags):
                    self.assert_seen(self.inject([python, *flags, path]))

    def test_memory_debugging(self):
        # The interpreter frees our hook with another allocator than the one that it came from.
        path = self.write("program.py", MODEL)
        for python in PYTHONS:
            for mode in ("debug", "malloc", "malloc_debug", "pymalloc_debug"):
                with self.subTest(python=python, mode=mode):
                    self.assert_seen(self.inject([python, path], PYTHONMALLOC=mode))
                    result = self.inject([python, "-c", "print(1)"], PYTHONMALLOC=mode)
                    self.assertEqual((result.code, result.stdout, result.stderr), (0, "1\n", ""))

    def test_ways_to_run(self):
        self.write("program.py", MODEL)
        folder = self.path("folder")
        os.mkdir(folder)
        self.write("folder/__main__.py", MODEL)
        with zipfile.ZipFile(self.path("zip.pyz"), "w") as archive:
            archive.writestr("__main__.py", MODEL)
        for python in PYTHONS:
            for command, stdin in ((["-c", MODEL], None), (["-m", "program"], None), (["-"], MODEL), ([], MODEL),
                                   ([folder], None), ([self.path("zip.pyz")], None)):
                with self.subTest(python=python, command=command[:1]):
                    self.assert_seen(self.inject([python, *command], stdin=stdin))

    def test_virtual_environment(self):
        path = self.write("program.py", MODEL)
        subprocess.run([support.PYTHON, "-m", "venv", "--without-pip", "--symlinks", self.path("venv")],
                       env=self.environment(), check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        python = self.path("venv/bin/python")
        if not os.path.exists(python):
            self.skipTest("this Python makes no virtual environments")
        trace = self.assert_seen(self.inject([python, path]))
        self.assertEqual(trace.process["python_executable"], python)

    def test_ways_to_import(self):
        rest = MODEL[MODEL.index("class Net"):]
        for statement in ("import torch.nn as nn, torch", "from torch.nn import Linear\nimport torch",
                          "torch = __import__('torch')",
                          "import threading\nt = threading.Thread(target=lambda: __import__('torch'))\n"
                          "t.start(); t.join()\nimport torch",
                          "import importlib\ntorch = importlib.import_module('torch')\nimport json, decimal, email",
                          # No event comes after the import here; a pending call comes by itself.
                          "import importlib, time\ntorch = importlib.import_module('torch')\n"
                          "end = time.time() + 2\nwhile time.time() < end: time.sleep(0.01)"):
            for python in PYTHONS:
                with self.subTest(python=python, statement=statement):
                    program = "import sys\nsys.path.insert(0, %r)\n%s\n%s" % (support.FAKE_TORCH, statement, rest)
                    self.assert_seen(self.inject([python, "-c", program]))

    def test_failing_imports_fail_as_ever(self):
        broken = self.path("broken")
        os.makedirs(broken + "/torch")
        for body in ("raise ImportError('libtorch_cpu.so: cannot open')", "import no_such_module_at_all",
                     "def f():\n    raise KeyboardInterrupt\nf()", "raise SystemExit(3)", "syntax error here", None):
            if body is None:
                shutil.rmtree(broken)
                os.makedirs(broken)
            else:
                self.write("broken/torch/__init__.py", body)
            for python in PYTHONS:
                for statement in ("import torch", "import torch.nn", "from torch import nn"):
                    program = self.write("program.py", "import sys\nsys.path[:] = [p for p in sys.path if not "
                                         "__import__('os').path.exists(p + '/torch')]\nsys.path.insert(0, %r)\n"
                                         "def load():\n    %s\nload()\n" % (broken, statement))
                    with self.subTest(python=python, body=body, statement=statement):
                        plain = self.plain([python, program])
                        result = self.inject([python, program])
                        self.assertNotEqual(plain.code, 0)
                        self.assertEqual((result.code, result.stdout, result.stderr),
                                         (plain.code, plain.stdout, plain.stderr))
                        self.assertEqual(result.files, [])

    def test_second_try_after_a_failed_import(self):
        self.write("flaky.py", "")
        program = """
import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            sys.meta_path.remove(self)
            raise ImportError("not yet")
sys.meta_path.insert(0, Finder())
try:
    import torch
except ImportError as error:
    print(error)
""" + MODEL
        for python in PYTHONS:
            result = self.inject([python, "-c", program])
            self.assertTrue(result.stdout.startswith("not yet\n"), result.stdout)
            self.assert_seen(result)

    def test_nothing_is_to_be_seen(self):
        program = MODEL.replace("class Net", "METACLASS = type(torch.nn.Module)\nclass Net") + """
import builtins, gc, threading
Module = torch.nn.Module
print([type(finder).__name__ if not isinstance(finder, type) else finder.__name__ for finder in sys.meta_path])
print(len(sys.path_hooks), builtins.__build_class__, builtins.__import__, type.__init__, METACLASS)
print(sorted(sys.modules))
print(Module.__call__.__qualname__, sorted(vars(Module)), Net.__mro__, torch.__spec__.loader.__class__)
print(len(threading.enumerate()), sys.getprofile(), sys.gettrace(), gc.isenabled())
print(sorted(net.__dict__), sorted(name for name in dir(builtins)))
type.__setattr__(Net, "answer", 42)
print(Net.answer, type("Other", (Net,), {})().answer, type(3), type.__call__(int, "7"))
"""
        for python in PYTHONS:
            with self.subTest(python=python):
                plain = self.plain([python, "-c", program])
                result = self.inject([python, "-c", program])
                self.assertEqual(result.stdout, plain.stdout)
                self.assertEqual(plain.code, 0, plain.stderr)
                self.assert_seen(result)

    def test_audit_hooks_of_the_users(self):
        program = "import sys\nsys.addaudithook(lambda event, args: print('torch import') " \
                  "if event == 'import' and args[0] == 'torch' else None)\n" + MODEL
        for python in PYTHONS:
            result = self.inject([python, "-c", program])
            self.assertIn("torch import", result.stdout)
            self.assert_seen(result)

    def test_late_door(self):
        # The library is opened and called by the process, before or after torch, as the CUDA driver does it.
        call = "import ctypes\nctypes.CDLL(%r).InitializeInjection()\n" % support.LIBRARY
        for python in PYTHONS:
            for where in ("class Net", "import torch", "net = Net()"):
                with self.subTest(python=python, where=where):
                    program = MODEL.replace(where, call + where, 1)
                    self.assert_seen(self.inject([python, "-c", program], LD_PRELOAD=None))

    def test_call_slots(self):
        for python in PYTHONS:
            with self.subTest(python=python):
                trace = self.assert_seen(self.inject([python, "-c", MODEL], RFINJECT_TIER="C"))
                self.assertEqual(trace.tier, "C")

    def test_own_call(self):
        # Python 3.11 lets `Loud` enter Module's past the function's vectorcall, and `Own` does not call it at all.
        program = MODEL + """
class Loud(Net):
    def __call__(self, x):
        return super().__call__(x)
class Passing(Net):
    def __call__(self, *args, **kwargs):
        return super().__call__(*args, **kwargs)
class Own(Net):
    def __call__(self, x):
        return self.forward(x)
class Duck:
    _call_impl = torch.nn.Module._call_impl
    def forward(self, *args):
        return 7
for _ in range(2):
    Loud()(torch.Tensor(2, 3))
    Passing()(x=torch.Tensor(2, 3))
    Own()(torch.Tensor(2, 3))
torch.nn.Module.__call__(net, x=torch.Tensor(2, 3))
print(torch.nn.Module.__call__(Duck(), 1))
for arguments in ((), (net,)):
    try:
        torch.nn.Module.__call__(*arguments)
    except TypeError as error:
        print(error)
"""
        for python in PYTHONS:
            plain = self.plain([python, "-c", program])
            self.assertEqual(plain.code, 0, plain.stderr)
            for tier in ("A", "C"):
                with self.subTest(python=python, tier=tier):
                    result = self.inject([python, "-c", program], RFINJECT_TIER=tier)
                    self.assertEqual((result.code, result.stdout), (0, plain.stdout))
                    models = [model["class_name"] for model in result.trace.models.values()]
                    self.assertEqual([name for name in models if name != "Duck"], ["Net", "Loud", "Passing", "Own"])
                    shapes = {layer["class_name"]: layer["input_shape"] for layer in result.trace.layers.values()
                              if layer["class_name"] != "Duck"}
                    self.assertEqual(shapes["Passing"], "f32[2,3]")

    def test_every_step_is_seen(self):
        # From Python 3.13 on, a place in the program that has made some objects of a class makes further ones without
        # tp_init.
        program = MODEL + """
def step():
    with torch.autograd.profiler.record_function("Optimizer.step#SGD.step"):
        pass
for _ in range(200):
    net(torch.Tensor(2, 3))
    step()
"""
        for python in PYTHONS:
            with self.subTest(python=python):
                trace = self.assert_seen(self.inject([python, "-c", program]))
                self.assertGreaterEqual(len(trace.steps), 200)  # and those that MODEL's calls end

    def test_two_copies_attach_once(self):
        os.mkdir(self.path("copy"))
        copy = self.path("copy/" + os.path.basename(support.LIBRARY))
        shutil.copy(support.LIBRARY, copy)
        program = MODEL + "\nimport ctypes\nprint(ctypes.CDLL(%r).InitializeInjection())\nnet(torch.Tensor(2, 3))" % copy
        result = self.inject([support.PYTHON, "-c", program])
        self.assert_seen(result)
        self.assertTrue(result.stdout.endswith("1\n"))
        self.assert_seen(self.inject([support.PYTHON, "-c", MODEL], LD_PRELOAD=support.LIBRARY + ":" + copy))

    def test_disabled(self):
        for python in PYTHONS:
            result = self.inject([python, "-c", MODEL], RFINJECT_DISABLE="1")
            self.assertEqual((result.code, result.files, result.stderr), (0, [], ""))

    def test_users_preload_stays(self):
        # The program's own LD_PRELOAD entries are neither removed nor reordered.
        result = self.inject([sys.executable, "-c", "import os; print(os.environ['LD_PRELOAD'])"])
        self.assertEqual(result.stdout, support.LIBRARY + "\n")


if __name__ == "__main__":
    support.main()
