#!/usr/bin/env python3
"""`rfinject try` as a user meets it, on programs as users write them.

Environment: RFINJECT, the command; RFINJECT_PYTHON, the interpreter for programs; RFINJECT_VIRTUAL_GPU, the folder of the
virtual GPU's libraries.
"""
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import cuda_torch  # noqa: E402
import operator_rows  # noqa: E402
from forked_python import ForkedPython  # noqa: E402

ROOT = HERE.parents[1]
RFINJECT = os.environ.get("RFINJECT") or str(ROOT / "build/release/bin/rfinject")
PYTHON = os.environ.get("RFINJECT_PYTHON") or sys.executable  # in its place `try` is mostly given one that need not import torch
WHY_NO_GPU = cuda_torch.why_no_virtual_gpu(os.environ.get("RFINJECT_VIRTUAL_GPU") or ROOT / "build/release/lib/virtual_gpu")
ON = "cpu" if WHY_NO_GPU else "virtual-gpu"
GPU = "A100-SXM4-40GB"
ESTIMATE = ["--estimate", GPU, "--estimate-on", ON]
FAKE_TORCH = str(ROOT / "integration_tests/python/fake_torch")
TIMEOUT_S = 600

RULES = (ROOT / "cli/report/advice/rules.txt").read_text()
TRIES = {rule.split("\n")[0]: re.search(r"(?m)^  try +(.*)$", rule)[1].split()
         for rule in re.split(r"(?m)^rule ", RULES) if re.search(r"(?m)^  try ", rule)}


def setUpModule():
    global FORKED
    FORKED = ForkedPython(PYTHON)
    unittest.addModuleCleanup(FORKED.close)


@functools.lru_cache(maxsize=None)
def has_overlay():
    with tempfile.TemporaryDirectory() as folder:
        inner = pathlib.Path(folder) / "lower"
        for name in ("lower", "upper", "work"):
            (pathlib.Path(folder) / name).mkdir()
        command = f"mount -t overlay overlay -o lowerdir={inner},upperdir={folder}/upper,workdir={folder}/work {inner}"
        return subprocess.run(["unshare", "-Urm", "sh", "-c", command], capture_output=True, check=False).returncode == 0


class TryTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="rfinject-try-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.kept = []
        self.addCleanup(lambda: [shutil.rmtree(path, ignore_errors=True) for path in self.kept])
        self.here = self.folder / "project"
        self.here.mkdir()
        self.place = [] if has_overlay() else ["--in-place"]

    def program(self, name, text=None):
        path = self.here / name
        path.write_text(text if text is not None else (HERE / "programs" / name).read_text())
        return path

    ENVIRONMENT = {key: value for key, value in os.environ.items()
                   if key == "RFINJECT_LIBRARY" or not key.startswith(("RFINJECT", "LD_PRELOAD", "CUDA_"))}
    ENVIRONMENT |= {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}

    def rfinject(self, *words, code=0, **environment):
        done = subprocess.run([RFINJECT, *map(str, words)], cwd=self.here, env=self.ENVIRONMENT | environment,
                              capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.kept += re.findall(r"everything is kept in (\S+)", done.stderr)
        return done

    def trials(self, *words, **options):
        """By name, what `try` says of each change."""
        done = self.rfinject("try", *self.place, "--format", "json", *words, **options)
        return {trial["change"]: trial for trial in json.loads(done.stdout)["trials"]}

    def operators(self, *traces):
        """The rows of operators of traces, training and validation, in an order of their own."""
        return operator_rows.rows_of(self.rfinject("report", *traces, "--by", "op", "--format", "csv", "--raw").stdout)


class Tried(TryTest):
    """What is tried of each program, once for all tests."""

    CHANGES = {"images.py": ["tf32", "autocast", "channels-last", "cudnn-benchmark", "set-to-none", "checkpoint=layer2", "no-grad",
                              "loader-workers=2"],
               "words.py": ["tf32", "autocast", "set-to-none", "checkpoint=blocks.1"],
               "loop.py": ["tf32", "autocast", "checkpoint=block"],
               "parallel.py": ["ddp-static-graph", "ddp-bucket-view"]}
    COMPILE = os.environ.get("RFINJECT_TRY_COMPILE") == "1"  # it takes minutes
    ON_A_GPU = {"images.py": ["optimizer-fused", "pin-memory"] + ["compile"] * COMPILE, "words.py": ["optimizer-fused"]}
    ON_A_CPU = {"images.py": ["optimizer-foreach"]}  # it is the default on a GPU
    WINDOW = ["--skip", "2", "--steps", "12", "--whole"]  # with the validation behind an epoch
    tried = {}  # by program, what `try` said and the operators that ran, both by change ("": none), and its files of changes

    def operators_of(self, path, **variables):
        """The operators of a program that is run without `try`."""
        traces = tempfile.mkdtemp(dir=self.folder) + "/"
        self.rfinject(*ESTIMATE, *self.WINDOW[:4], "-q", "-o", traces, FORKED.path, path, **variables)
        return self.operators(traces)

    def try_all(self, program):
        """All changes in one call, so that the unchanged program runs once."""
        if program not in self.tried:
            path = self.program(program)
            changes = self.CHANGES[program] + (self.ON_A_CPU if WHY_NO_GPU else self.ON_A_GPU).get(program, [])
            trials = self.trials(*ESTIMATE, "--keep", *self.WINDOW, *changes, FORKED.path, path)
            kept = self.kept[-1]
            self.tried[program] = (trials, {change: self.operators(f"{kept}/run{i}/traces/")
                                            for i, change in enumerate(["", *changes], start=1)},
                                   [path.read_text() for path in pathlib.Path(kept).glob("run*/change.py")])
        return self.tried[program]

    def check_patch(self, program, change):
        """The patched program runs the operators that the change made it run."""
        trials, operators, _ = self.try_all(program)
        path = self.program(program)
        subprocess.run(["git", "init", "-q", "."], cwd=self.here, check=True)
        subprocess.run(["git", "apply", "-"], input="".join(trials[change]["diffs"]), text=True, cwd=self.here, check=True)
        self.assertEqual(self.operators_of(path), operators[change])


class AsByHand(Tried):
    """The operators of a program with a change are those of the program that a hand has changed."""

    def check(self, program, change, needs_gpu=False, phases=True):
        if needs_gpu and WHY_NO_GPU:
            print(f"note: {change} of {program} is left out: {WHY_NO_GPU}")
            self.skipTest(WHY_NO_GPU)
        trials, operators, _ = self.try_all(program)
        self.assertEqual(trials[change]["state"], "made", trials[change])
        tried, by_hand = operators[change], self.operators_of(self.program(program), EDITED=change)
        if phases:
            self.assertEqual(tried, by_hand)
        else:
            self.assertEqual(operator_rows.launches(tried), operator_rows.launches(by_hand))
        self.assertGreater(len(tried), 10)
        return by_hand != operators[""]

    def test_tf32_images(self):
        self.assertTrue(self.check("images.py", "tf32"))

    def test_tf32_words(self):
        self.assertTrue(self.check("words.py", "tf32"))

    def test_autocast_images(self):
        self.assertTrue(self.check("images.py", "autocast"))

    def test_autocast_words(self):
        self.assertTrue(self.check("words.py", "autocast"))

    def test_channels_last_images(self):
        # By hand the images are converted in front of the model, here within its call.
        self.check("images.py", "channels-last", phases=False)

    def test_cudnn_benchmark_images(self):
        # Which of its engines cuDNN finds to be the fastest is chance where they take the same time.
        self.check("images.py", "cudnn-benchmark", phases=False)

    def test_set_to_none_images(self):
        self.assertTrue(self.check("images.py", "set-to-none"))

    def test_set_to_none_words(self):
        self.assertTrue(self.check("words.py", "set-to-none"))

    def test_checkpoint_images(self):
        self.assertTrue(self.check("images.py", "checkpoint=layer2"))

    def test_checkpoint_words(self):
        self.assertTrue(self.check("words.py", "checkpoint=blocks.1"))

    def test_no_grad_images(self):
        self.check("images.py", "no-grad")

    def test_optimizer_fused_images(self):
        self.assertTrue(self.check("images.py", "optimizer-fused", needs_gpu=True))

    def test_optimizer_fused_words(self):
        self.assertTrue(self.check("words.py", "optimizer-fused", needs_gpu=True))

    def test_optimizer_foreach_images(self):
        if not WHY_NO_GPU:
            self.skipTest("it is the default on a GPU")
        self.assertTrue(self.check("images.py", "optimizer-foreach"))

    def test_loader_workers_images(self):
        self.check("images.py", "loader-workers=2")

    def test_pin_memory_images(self):
        self.check("images.py", "pin-memory", needs_gpu=True)

    def test_tf32_loop(self):
        # Beside the newer setting of the precision, which the program makes, the flags cannot be read.
        changed = self.check("loop.py", "tf32")
        self.assertTrue(changed or WHY_NO_GPU)

    def test_autocast_loop(self):
        # Ours begins inside of the program's autocast and ends behind it.
        self.assertTrue(self.check("loop.py", "autocast"))

    def test_checkpoint_loop(self):
        # The sum in the block itself is computed again in the backward, too.
        self.assertTrue(self.check("loop.py", "checkpoint=block"))

    def test_ddp_static_graph(self):
        self.check("parallel.py", "ddp-static-graph")

    def test_ddp_bucket_view(self):
        self.assertTrue(self.check("parallel.py", "ddp-bucket-view"))

    def test_autocast_in_float16_where_there_is_no_bfloat16(self):
        if WHY_NO_GPU:
            self.skipTest(WHY_NO_GPU)
        estimate = ["--estimate", "V100-SXM2-16GB", "--estimate-on", ON]
        path = self.program("words.py")
        trial = self.trials(*estimate, "--keep", "autocast", FORKED.path, path)["autocast"]
        self.assertTrue(trial["text"].startswith("float16 at words.py:"), trial)
        self.rfinject(*estimate, "--skip", "3", "--steps", "4", "--kill", "-q", "-o", f"{self.folder}/by-hand/", FORKED.path, path,
                      EDITED="autocast-float16")
        tried, by_hand = self.operators(f"{self.kept[0]}/run2/traces/"), self.operators(f"{self.folder}/by-hand/")
        self.assertEqual(tried, by_hand)
        self.assertIn("aten::_amp_update_scale_", [row["op"] for row in map(dict, tried)])

    def test_compile_images(self):
        if WHY_NO_GPU or not self.COMPILE:
            print("note: compile of images.py is left out: it takes minutes; RFINJECT_TRY_COMPILE=1 runs it on a virtual GPU")
            self.skipTest("takes minutes")
        self.assertTrue(self.check("images.py", "compile", needs_gpu=True))

    def test_all_at_once_where_torch_is_imported_by_the_program(self):
        # What was tried above ran in children of a process that had imported more of torch than `import torch` does.
        program = self.program("images.py")
        report = self.folder / "report"
        files = [text for name in self.CHANGES for text in self.try_all(name)[2]]
        texts = [re.sub(r"'report': '[^']*'", f"'report': '{report}'", text) for text in files]
        all_changes = self.folder / "all.py"
        all_changes.write_text(f"for text in {texts!r}:\n    exec(compile(text, '<rfinject>', 'exec'), {{}})\n")
        done = self.rfinject(*ESTIMATE, *self.WINDOW[:4], PYTHON, program, RFINJECT_TRY=str(all_changes))
        self.assertNotIn("was not made", done.stderr)
        made = {line.split("\t")[2] for line in report.read_text().splitlines() if line.split("\t")[1:4:2] == ["change", "made"]}
        self.assertEqual(made, {change for change in self.try_all("images.py")[1] if change})


class States(TryTest):
    def test_what_the_program_does_already_and_what_has_nothing_to_change(self):
        path = self.program("images.py")
        trials = self.trials(*ESTIMATE, "tf32", "set-to-none", "ddp-static-graph", FORKED.path, path, EDITED="tf32 set-to-none")
        self.assertEqual([trials[name]["state"] for name in ("tf32", "set-to-none", "ddp-static-graph")],
                         ["already made", "already made", "nothing to change"])
        self.assertFalse(trials["tf32"]["recommended"])

    def test_a_gpu_without_tf32_says_so(self):
        trial = self.trials("--estimate", "V100-SXM2-16GB", "--estimate-on", ON, "tf32", FORKED.path, self.program("words.py"))["tf32"]
        self.assertEqual((trial["state"], trial["text"]), ("nothing to change", "this GPU has no TF32"))

    def test_a_program_that_fails_by_itself_is_not_compared(self):
        path = self.program("fails.py", "import torch\nraise KeyError('mine')\n")
        done = self.rfinject("try", *self.place, *ESTIMATE, "tf32", FORKED.path, path, code=1)
        self.assertIn("the program without any change fails: KeyError: 'mine'", done.stderr)


class Together(TryTest):
    """Several changes in one call, two of which fail."""

    told = None

    def setUp(self):
        super().setUp()
        if self.told is None:
            raises, large = self.folder / "raises.py", self.folder / "large.py"
            raises.write_text('def fail(model, arguments):\n    change.made("here")\n    raise ValueError("not this one")\n\n\n'
                              "on_root(fail)\n")
            if WHY_NO_GPU:
                large.write_text('class OutOfMemoryError(RuntimeError):\n    pass\n\n\ndef fail(model, arguments):\n'
                                 '    raise OutOfMemoryError("CUDA out of memory.")\n\n\non_root(fail)\n')
            else:
                large.write_text('on_root(lambda model, arguments: torch.empty(2 ** 37, device="cuda") and None)\n')
            trials = self.trials(*ESTIMATE, f"@{raises}", f"@{large}", "tf32", "set-to-none", FORKED.path, self.program("words.py"))
            type(self).told = {pathlib.PurePath(name).name: trial for name, trial in trials.items()}

    def test_an_exception_in_one_and_the_others_go_on(self):
        self.assertEqual((self.told["raises.py"]["state"], self.told["raises.py"]["text"]), ("failed", "ValueError: not this one"))
        self.assertEqual(self.told["tf32"]["state"], "made")
        self.assertGreater(self.told["tf32"]["won_ns"], 0)

    def test_out_of_memory_is_a_result(self):
        self.assertEqual(self.told["large.py"]["state"], "out of memory")

    def test_the_best_are_tried_together(self):
        self.assertAlmostEqual(self.told["tf32 + set-to-none"]["won_ns"],
                               self.told["tf32"]["won_ns"] + self.told["set-to-none"]["won_ns"], delta=1)


@unittest.skipUnless(has_overlay(), "note: this machine mounts no overlay in a namespace of one's own")
class Advised(TryTest):
    """Each has a copy of the folder of one run."""

    NAME = pathlib.Path(PYTHON).name  # so that another one is found in its place
    ran = None

    @classmethod
    def tearDownClass(cls):
        if cls.ran is not None:
            shutil.rmtree(cls.ran)

    def setUp(self):
        super().setUp()
        self.program("words.py")
        if self.ran is None:
            self.rfinject(*ESTIMATE, "--skip", "1", self.NAME, "words.py", PATH=f"{pathlib.Path(PYTHON).parent}:{os.environ['PATH']}")
            type(self).ran = tempfile.mkdtemp(prefix="rfinject-try-test-")
            shutil.move(self.here / "rfinject-out", self.ran)
        shutil.copytree(f"{self.ran}/rfinject-out", self.here / "rfinject-out", symlinks=True)

    def test_what_the_latest_run_is_advised_is_tried(self):
        said = json.loads(self.rfinject("advise", "--format", "json").stdout)["runs"][0]["rules"]
        changes = [change for rule in said if rule["state"] == "holds" and rule["proven"] for change in TRIES.get(rule["rule"], [])]
        self.assertGreater(len(changes), 1)
        done = self.rfinject("advise", "--try", "--yes", "--format", "json", PATH=f"{FORKED.folder}:{os.environ['PATH']}")
        trials = json.loads(done.stdout)["trials"][1:]
        self.assertEqual([trial["change"] for trial in trials if " + " not in trial["change"]], changes)
        self.assertIn(f"rfinject try --format=json --estimate={GPU} --estimate-on={ON} {' '.join(changes)} {self.NAME} words.py\n", done.stderr)
        for trial in trials:
            if trial["change"] in changes and trial["state"] == "made":
                self.assertIsNotNone(trial["predicted_ns"], trial)

    def test_a_command_that_a_trace_names_is_not_run_unasked(self):
        self.program("words.py", "open('ran', 'w')\n")
        done = self.rfinject("advise", "--try", code=2)
        self.assertIn("--yes", done.stderr)
        self.assertFalse((self.here / "ran").exists())
        self.rfinject("advise", "--yes", code=2)

    def test_a_trace_that_names_no_command_gives_the_changes_to_type(self):
        done = self.rfinject("advise", "--try", "--yes", ROOT / "cli/import/testdata/h100_resnet18_step.json.gz", code=1)
        self.assertRegex(done.stderr, r"does not say which program it is of; type: rfinject try .*autocast.* PROGRAM")


class Loss(TryTest):
    WRONG = {
        "no-steps.py": "around_step(lambda optimizer, step: change.made('no step is taken'))\n",
        "ten-times.py": "before_backward(lambda loss: (change.made('ten times'), loss * 10)[1])\n"
                        "def lr(optimizer, arguments):\n    arguments['lr'] = arguments['lr'] * 10\n"
                        "for cls in optimizers_with('lr'):\n    on_construct(cls, lr)\n",
        "fewer.py": "on_root(lambda model, arguments: (change.made('half the batch'), around(model, lambda m, a: "
                    "tuple(x[:1] for x in a)))[0])\n"}

    def test_wrong_changes_are_told_apart_from_right_ones_and_never_recommended(self):
        for name, text in self.WRONG.items():
            (self.folder / name).write_text(text)
        trials = self.trials(*ESTIMATE, "--check-loss", "cpu", "set-to-none", "checkpoint=blocks.0", "autocast",
                             *(f"@{self.folder / name}" for name in self.WRONG), FORKED.path, self.program("words.py"))
        self.assertEqual(trials["set-to-none"]["loss"], "same")
        self.assertEqual(trials["checkpoint=blocks.0"]["loss"], "same")
        self.assertEqual(trials["autocast"]["loss"], "within rounding")
        for name in self.WRONG:
            trial = trials[f"@{self.folder / name}"]
            self.assertEqual((trial["loss"], trial["recommended"]), ("OUTSIDE", False), trial)

    def test_a_virtual_gpus_losses_are_not_checked_and_it_says_so(self):
        done = self.rfinject("try", *self.place, "--estimate", GPU, "tf32", FORKED.path, self.program("words.py"), RFINJECT_ESTIMATE_ON=ON)
        self.assertIn("no loss was checked", done.stdout)


@unittest.skipUnless(has_overlay(), "note: this machine mounts no overlay in a namespace of one's own")
class Folder(TryTest):
    def test_checkpoints_and_logs_stay_as_they_were(self):
        path = self.program("images.py")
        (self.here / "checkpoint.pt").write_text("precious")
        trial = self.trials(*ESTIMATE, "--whole", "--steps", "3", "set-to-none", PYTHON, path)["set-to-none"]
        self.assertEqual(trial["state"], "made")
        self.assertEqual((self.here / "checkpoint.pt").read_text(), "precious")
        self.assertEqual(sorted(entry.name for entry in self.here.iterdir()), ["checkpoint.pt", "images.py"])

    def test_in_place_writes(self):
        path = self.program("images.py")
        self.rfinject("try", *ESTIMATE, "--in-place", *Tried.WINDOW, "set-to-none", FORKED.path, path)
        self.assertTrue((self.here / "weights.pt").exists())

    def test_what_matplotlib_writes_is_no_reason_to_refuse(self):
        home = self.folder / "home"
        home.mkdir()
        path = self.program("plots.py", "import os, torch\nos.makedirs(os.path.expanduser('~/.config/matplotlib'))\n")
        inside = self.folder / "temporary"
        inside.mkdir()
        done = self.rfinject("try", *ESTIMATE, "set-to-none", FORKED.path, path, code=1, HOME=str(home), TMPDIR=str(inside))
        self.assertNotIn("outside of its folder", done.stderr)

    def test_a_program_that_writes_elsewhere_is_refused_before_it_does(self):
        # Below the home folder, for folders of temporary files are no user's.
        home = self.folder / "home"
        home.mkdir()
        for line in ("open(elsewhere, 'w')", "torch.save({}, elsewhere)", "os.replace(__file__, elsewhere)",
                     "os.mkdir(elsewhere)"):
            path = self.program("elsewhere.py", f"import os, torch\nelsewhere = '{home}/results'\n{line}\n")
            inside = self.folder / "temporary"
            inside.mkdir(exist_ok=True)
            done = self.rfinject("try", *ESTIMATE, "set-to-none", FORKED.path, path, code=1, TMPDIR=str(inside))
            self.assertIn(f"it writes {home}/results, which is outside of its folder; --in-place accepts that", done.stderr)
            self.assertFalse((home / "results").exists(), line)


class Patch(Tried):
    def apply(self, *changes):
        path = self.program("words.py")
        subprocess.run(["git", "init", "-q", "."], cwd=self.here, check=True)
        patch = self.rfinject("try", *self.place, *ESTIMATE, "--diff", *changes, FORKED.path, path).stdout
        subprocess.run(["git", "apply", "-"], input=patch, text=True, cwd=self.here, check=True)
        return path.read_text()

    def test_tf32(self):
        self.check_patch("words.py", "tf32")

    def test_autocast(self):
        self.check_patch("words.py", "autocast")

    def test_autocast_in_an_autocast(self):
        self.check_patch("loop.py", "autocast")

    def test_set_to_none(self):
        self.check_patch("words.py", "set-to-none")

    def test_several_apply_together(self):
        text = self.apply("tf32", "set-to-none")
        self.assertIn("torch.backends.cuda.matmul.allow_tf32 = True\n", text)
        self.assertNotIn("set_to_none=False", text)


class Command(TryTest):
    def test_a_requirement_decides_the_exit_code(self):
        path = self.program("words.py")
        done = self.rfinject("try", *self.place, *ESTIMATE, "--require", "won>=0.1%", "--format", "markdown", "set-to-none",
                             FORKED.path, path)
        self.assertRegex(done.stdout, r"(?m)^\|.*set-to-none.*\|.*real.*\|$")
        done = self.rfinject("try", *self.place, *ESTIMATE, "--require", "won>=99%", "set-to-none", FORKED.path, path, code=4)
        self.assertIn("won>=99% does not hold", done.stderr)

    def test_mistakes(self):
        for words, said in ((["tf23", PYTHON], "did you mean 'tf32'"), (["tf32"], "no program"), (["checkpoint", PYTHON], "checkpoint=LAYER"),
                            (["--require", "won>10", "tf32", PYTHON], "--require"), (["@nothere.py", PYTHON], "nothere.py"),
                            (["--estimate", "A100x", "tf32", PYTHON], "no such GPU")):
            self.assertIn(said, self.rfinject("try", *words, code=2).stderr)

    def test_every_change_is_listed_is_short_and_says_what_to_write(self):
        said = self.rfinject("try", "--list").stdout
        files = sorted((ROOT / "injector/changes").glob("*.py"))
        self.assertGreater(len(files), 12)
        for path in files:
            if path.stem not in ("frame", "edits"):
                self.assertLessEqual(len(path.read_text().splitlines()), 40, path.name)
                self.assertRegex(said, rf"(?m)^{path.stem.replace('_', '-')} +\w.*\n +write: \S")

    def test_rules_name_changes_that_there_are(self):
        names = {word.split("=")[0] for words in TRIES.values() for word in words}
        self.assertGreater(len(names), 8)
        self.assertLessEqual(names, {path.stem.replace("_", "-") for path in (ROOT / "injector/changes").glob("*.py")})


class Harmless(TryTest):
    SPY = """
import gc, sys, torch
gc.collect()
seen = set()
sys.setprofile(lambda frame, event, argument: seen.add(frame.f_code.co_filename))
exec(open(sys.argv[1]).read())
sys.setprofile(None)
seen |= {thing.__code__.co_filename for thing in gc.get_objects() if type(thing).__name__ == 'function'}
print(sorted(name for name in seen if name.startswith('<rfinject')))
"""

    def test_without_try_no_python_of_ours_runs_or_waits(self):
        path = self.program("spy.py", self.SPY)
        done = self.rfinject(*ESTIMATE, PYTHON, path, self.program("words.py"))
        self.assertEqual(done.stdout.strip(), "[]")
        frame = self.folder / "change.py"
        frame.write_text("def mine():\n    pass\n\n\nimport sys\nsys.modules['torch'].mine = mine\n")
        done = self.rfinject(*ESTIMATE, PYTHON, path, os.devnull, RFINJECT_TRY=str(frame))
        self.assertEqual(done.stdout.strip(), "['<rfinject>']")  # so the spy would have seen it

    def test_a_change_that_cannot_be_made_is_said_and_the_program_goes_on(self):
        path = self.program("one.py", "import torch\nprint('ran')\n")
        # A stand-in for torch, which is imported at once, serves for all but one.
        for text, said, folder in ((None, "No such file", FAKE_TORCH), ("nonsense(", "SyntaxError", FAKE_TORCH),
                                   ("1 / 0\n", "ZeroDivisionError", "")):
            change = self.folder / "change.py"
            if text is not None:
                change.write_text(text)
            done = self.rfinject(*ESTIMATE, PYTHON, path, RFINJECT_TRY=str(change), PYTHONPATH=folder)
            self.assertEqual(done.stdout, "ran\n")
            self.assertIn(said, done.stderr)


if __name__ == "__main__":
    unittest.main()
