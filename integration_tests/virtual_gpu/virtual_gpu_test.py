"""Programs that are written for CUDA run to their end on a virtual GPU, and do there what they would do on a GPU.

    virtual_gpu_test.py [unittest arguments]
RFINJECT names the command, RFINJECT_PYTHON the interpreter (default: the one that runs this file). Without a torch that is
a CUDA build, or where NVIDIA's driver is, all is skipped. torchvision's training program is fetched
(scripts/reference_programs); RFINJECT_REFERENCE_PROGRAMS names a folder with clones of pytorch/vision and pytorch/examples,
as vision and examples, whose programs run in its place. With RFX_HARDWARE_PATH=all, as scripts/test --all sets it, they run on
every board, else each on one.
"""
import collections
import functools
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import rfx_trace  # noqa: E402
from cuda_torch import why_no_virtual_gpu  # noqa: E402
from program_run import COMPILING, PROGRAMS, PYTHON, RFINJECT, Run  # noqa: E402

LIBRARIES = pathlib.Path(RFINJECT).resolve().parent.parent / "lib" / "virtual_gpu"
ALL = os.environ.get("RFX_HARDWARE_PATH") == "all"
BOARDS = ("V100-SXM2-16GB", "A100-SXM4-80GB", "H100-SXM5-80GB")
FORKED_RANKS = pathlib.Path(__file__).resolve().parents[1] / "forked_ranks.py"
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"

# 2 per multiply-add of ResNet-18's convolutions and its linear layer, an image of 224 x 224; the backward lacks the
# gradient of the images.
RESNET18_FORWARD = 3_628_146_688
RESNET18_BACKWARD = 7_020_265_472
# Kernels that a step of it launches, forward, backward and optimizer, by torch and the words of train.py.
RESNET18_LAUNCHES = {
    "2.6": {(): "90 94 5", ("amp",): "114 119 11", ("amp", "channels_last"): "115 121 11"},
    "2.15": {(): "90 92 4", ("amp",): "114 117 10", ("amp", "channels_last"): "115 118 10"},
}


def board_of(gpu):
    """Its row of the table of GPUs."""
    text = subprocess.run([RFINJECT, "gpus", gpu, "--format", "json"], check=True, capture_output=True, text=True).stdout
    row, = json.loads(text)["gpus"]
    return row


# What the programs compute with the results of a validation, outside of any module.
OF_AN_ACCURACY = {"aten::topk", "aten::eq", "aten::sum", "aten::mul", "aten::copy_"}


class VirtualGpu(unittest.TestCase):
    def finished(self, run, code=0):
        self.addCleanup(run.close)
        self.assertEqual(run.code, code, run.out + run.err)
        return run

    def run_program(self, *arguments, code=0, **more):
        return self.finished(Run(*arguments, **more), code)

    def run_in_child(self, *arguments, code=0, **more):
        """As run_program, for what does not depend on how a process begins."""
        return self.finished(Run.in_child(*arguments, **more), code)

    def assert_every_launch_of_a_layer_has_it(self, run, outside=()):
        """Only the operators named `outside` are without a module, an accuracy's beside a validation, and what is
        neither forward nor backward."""
        rows = [row for report in run.reports("op") for row in report["rows"]]
        unknown = {row["op"] for row in rows
                   if row["phase"] in ("forward", "backward", "recompute", "eval") and row["model"] is None
                   and not (row["phase"] == "eval" and row["op"] in OF_AN_ACCURACY)}
        self.assertLessEqual(unknown, set(outside))
        for phase in ("forward", "backward"):
            self.assertTrue(any(row["phase"] == phase and row["model"] for row in rows), phase)
        # Numbers that the host hands over with a launch are no copies.
        copies = {row["op"] for row in rows if row["phase"] == "data"}
        self.assertLessEqual(copies, {"aten::copy_", "aten::_foreach_copy_"})

    def test_flop_and_launches_of_resnet18(self):
        for batch in (1, 8, 256):
            with self.subTest(batch=batch):
                run = self.run_in_child("train.py", "resnet18", batch)
                report = run.report("op")
                self.assertEqual(report["collector"], "virtual-gpu")
                images = batch * report["steps"]
                flop = {"forward": 0, "backward": 0}
                for row in report["rows"]:
                    if row["op"] in ("aten::convolution", "aten::addmm", "aten::convolution_backward", "aten::mm"):
                        flop[row["phase"]] += row["model_flop"]
                self.assertEqual(flop["forward"], images * RESNET18_FORWARD)
                self.assertEqual(flop["backward"], images * RESNET18_BACKWARD)
                steps = [line for line in run.out.splitlines() if line.startswith("launches ")]
                # The sequence does not depend on the batch size; the first step has the optimizer's buffers to make.
                self.assertEqual(steps[1:], [steps[1]] * (len(steps) - 1), run.out)
                # The report has them all below the operators that launched them, by phase.
                counted = collections.Counter()
                for row in report["rows"]:
                    counted[row["phase"]] += row["kernel_launches"] or 0
                seen = [sum(int(line.split()[i]) for line in steps) for i in (1, 2, 3)]
                # The gradient of the loss, a 1, is made in backward() before any node runs: "other".
                counted["backward"] += counted.pop("other")
                self.assertEqual([counted.pop(phase) for phase in ("forward", "backward", "optimizer")], seen)
                self.assertEqual(counted.total(), 0)
                product, = (row for row in report["rows"] if row["op"] == "aten::addmm")
                self.assertRegex(product["kernels"], rf"^standin_\S+ {report['steps']}$")
                self.assert_launches(steps[1], ())

    def assert_launches(self, line, words):
        """That a step of ResNet-18 launches what this torch launches; of another torch, what one of these does."""
        known = {torch: of[words] for torch, of in RESNET18_LAUNCHES.items()}
        torch = ".".join(importlib.metadata.version("torch").split(".")[:2])
        self.assertIn(line.removeprefix("launches "), [known[torch]] if torch in known else known.values())

    def test_launches_of_mixed_precision(self):
        for words in (("amp",), ("amp", "channels_last")):
            with self.subTest(words=words):
                run = self.run_in_child("train.py", "resnet18", 8, *words)
                self.assert_launches([line for line in run.out.splitlines() if line.startswith("launches ")][-1], words)

    def test_loops_of_the_usual_frameworks(self):
        for words, gpu in ((("trainer",), "H100-SXM5-80GB"), (("closure",), "V100-SXM2-16GB")):
            with self.subTest(words=words):
                run = self.run_in_child("loops.py", *words, gpu=gpu)
                self.assertIn("loop ok", run.out)
                rows = [row for report in run.reports("op") for row in report["rows"]]
                outside = {row["op"] for row in rows
                           if row["phase"] in ("forward", "backward", "recompute") and row["model"] is None}
                # The loss is no module here, and what the program computes with it neither.
                self.assertLessEqual(outside, {"aten::_log_softmax_backward_data", "aten::nll_loss_backward", "aten::div"})
                self.assertTrue(any(row["phase"] == "backward" and row["model"] for row in rows))
                if words == ("trainer",):
                    self.assertTrue(any(row["phase"] == "recompute" for row in rows))

    def test_a_recipe_for_images(self):
        for gpu in BOARDS:
            with self.subTest(gpu=gpu):
                run = self.run_in_child("loops.py", "recipe", gpu=gpu)
                self.assertIn("loop ok", run.out)
                # The scaler multiplies the loss, and so does its backward.
                self.assert_every_launch_of_a_layer_has_it(run, {"aten::mul"})

    def test_the_reference_programs(self):
        programs = os.environ.get("RFINJECT_REFERENCE_PROGRAMS")
        if not programs:
            fetched = subprocess.run([EXAMPLES.parent / "scripts" / "reference_programs"], capture_output=True, text=True)
            if fetched.returncode != 0:
                print("note: the reference programs are left out: they could not be fetched")
                self.skipTest(fetched.stderr)
            programs = fetched.stdout.strip()
        folder = pathlib.Path(tempfile.mkdtemp(prefix="rfinject-images-"))
        self.addCleanup(shutil.rmtree, folder)
        for split, images in (("train", 4), ("val", 2)):
            for name in "abcdef":
                (folder / split / name).mkdir(parents=True)
                for i in range(images):
                    # An image of 64 pixels' side: a header, and bytes.
                    (folder / split / name / f"{i}.ppm").write_bytes(b"P6 64 64 255\n" + os.urandom(3 * 64 * 64))
        train = pathlib.Path(programs) / "vision" / "references" / "classification" / "train.py"
        main = pathlib.Path(programs) / "examples" / "imagenet" / "main.py"
        shared = ("-b", 8, "-j", 1, "--epochs", 1)
        train_words = (train, "--data-path", folder, "--model", "resnet18", *shared)
        main_words = (main, "-a", "resnet18", *shared)
        cases = [(*train_words, "--amp", "--model-ema", "--clip-grad-norm", 1, "--mixup-alpha", 0.2, "--cutmix-alpha", 1,
                  "--label-smoothing", 0.1, "--random-erase", 0.1, "--auto-augment", "ta_wide", "--output-dir",
                  folder / "out"),
                 (*train_words, "--opt", "adamw", "--norm-weight-decay", 0),
                 (*main_words, folder), (*main_words, "--gpu", 0, folder)]
        for i, words in enumerate(case for case in cases if case[0].exists()):
            for gpu in BOARDS if ALL else [BOARDS[i % len(BOARDS)]]:
                with self.subTest(gpu=gpu, words=words):
                    # main.py leaves its checkpoint where it is started.
                    run = self.run_in_child(*words, gpu=gpu, cwd=folder)
                    self.assert_every_launch_of_a_layer_has_it(run, {"aten::mul"} if "--amp" in words else ())

    def test_the_imagenet_program(self):
        for gpu in BOARDS:
            with self.subTest(gpu=gpu):
                run = self.run_in_child(EXAMPLES / "imagenet" / "main.py", "-a", "resnet18", "--dummy", "--dummy-images",
                                        64, "--num-classes", 10, "--image-size", 64, "-b", 32, "-j", 1, "-p", 1,
                                        "--epochs", 1, "--amp", gpu=gpu)
                self.assertEqual(run.report("model")["collector"], "virtual-gpu")

    def test_no_library_of_nvidias_is_called(self):
        # The dynamic linker writes down whose function each call gets, and what dlsym finds.
        with tempfile.TemporaryDirectory(prefix="rfinject-bindings-") as folder:
            run = self.run_program("train.py", "resnet18", 2,
                                   environment={"LD_DEBUG": "bindings", "LD_DEBUG_OUTPUT": folder + "/of"})
            owners = collections.Counter()
            for path in pathlib.Path(folder).iterdir():
                with path.open(errors="replace") as lines:
                    owners.update(re.findall(r"^ *\d+:\tbinding file .* \[\d+\] to (.*) \[\d+\]:", lines.read(), re.MULTILINE))
        ours = sum(count for path, count in owners.items() if pathlib.Path(path).name.startswith("librfinject_cuda"))
        self.assertGreater(ours, 50)
        self.assertEqual([path for path in owners if "/nvidia/" in path], [])
        # No library of NVIDIA's is even loaded, but for the two that torch/__init__.py opens by their paths.
        loaded = [line.split()[1] for line in run.out.splitlines() if line.startswith("library ")]
        others = [path for path in loaded if "libcufile" not in path and "libcublasLt" not in path]
        self.assertEqual(others, [])

    def test_memory_is_the_boards(self):
        fits = self.run_in_child("train.py", "vgg19", 256, gpu="A100-SXM4-80GB")
        self.assertIn("NVIDIA A100-SXM4-80GB", fits.out)
        too_large = self.run_in_child("train.py", "vgg19", 256, gpu="V100-SXM2-16GB", code=1)
        self.assertIn("OutOfMemoryError", too_large.err)
        self.assertIn("total capacity of 15.78 GiB", too_large.err)
        # The report has where memory was asked for in vain, and what was allocated then.
        memory = too_large.memory()
        asked = float(re.search(r"Tried to allocate ([\d.]+) MiB", too_large.err).group(1)) * 2**20
        allocated = float(re.search(r"([\d.]+) GiB is allocated by PyTorch", too_large.err).group(1))
        self.assertEqual(memory["refused"]["bytes"], asked)
        self.assertEqual((memory["refused"]["model"], memory["refused"]["phase"]), ("VGG", "forward"))
        self.assertRegex(memory["refused"]["layer"], r"^features\.\d+$")
        self.assertAlmostEqual(memory["allocated_bytes"] / 2**30, allocated, delta=0.01)
        self.assertEqual(sum(row["bytes"] for row in memory["rows"]), memory["allocated_bytes"])
        self.assertIn(f"asked for in {memory['refused']['layer']}, forward", too_large.err)
        self.assertIsNone(fits.memory()["refused"])

    def test_a_large_batch_costs_little(self):
        run = self.run_in_child("train.py", "resnet50", 256)
        seconds = [float(text) for text in re.findall(r"^cpu_seconds (.*)$", run.out, re.MULTILINE)]
        # 3 s a step on two cores are 6 of a processor; what was measured is a fortieth.
        self.assertLess(max(seconds[1:]), 1.5)
        self.assertLess(int(re.search(r"^most_memory_kib (\d+)$", run.out, re.MULTILINE).group(1)), 2 * 2**20)
        self.assertEqual(run.memory()["allocated_bytes"],
                         int(re.search(r"^NVIDIA A100-SXM4-80GB (\d+)$", run.out, re.MULTILINE).group(1)))

    def test_memory_at_the_peak(self):
        run = self.run_in_child("peak.py")
        torchs = int(re.search(r"^peak (\d+)$", run.out, re.MULTILINE).group(1))
        peak = run.memory()
        # The peak is what torch itself says, and its parts add up to it.
        self.assertEqual(peak["allocated_bytes"], torchs)
        self.assertEqual(sum(row["bytes"] for row in peak["rows"]), torchs)
        self.assertGreaterEqual(peak["reserved_bytes"], torchs)
        self.assertEqual(peak["parameter_bytes"], 4 * (1024 * 1024 + 1024 + 10 * 1024 + 10))
        parts = {(row["layer"], row["phase"]): row["bytes"] for row in peak["rows"]}
        self.assertEqual(len(parts), len(peak["rows"]))
        mib = 1 << 20
        # It is where the ReLU's backward makes its second gradient: its output of 16384 times 1024 numbers is still
        # there, the gradient of it, which the layer after it has made, the input, and two moments of Adam's.
        self.assertEqual(parts["relu", "forward"], 64 * mib)
        self.assertEqual(parts["relu", "backward"], 64 * mib)
        self.assertGreaterEqual(parts["out", "backward"], 64 * mib)
        self.assertNotIn(("wide", "backward"), parts)
        self.assertGreaterEqual(parts[None, "optimizer"], 8 * mib)
        self.assertGreaterEqual(parts[None, "other"], 68 * mib)
        self.assertEqual(peak["step"], 1, "the state is made in the first step, so the second has more")

    def test_what_no_host_wrote_reads_as_zeros(self):
        run = self.run_in_child("memory.py")
        self.assertIn("memory ok", run.out)

    def test_small_tensors_have_their_values(self):
        run = self.run_in_child("values.py")
        self.assertNotIn("False", run.out)
        line, = re.findall(r"LINE (\d+)", run.out)
        self.assertIn(f"values.py:{line} reads results that the virtual GPU did not compute: they are zeros", run.err)
        # What asks whether numbers are finite reads what was not computed, too; nothing before that does.
        self.assertEqual(run.err.count("reads results"), 2, run.err)

    def test_programs_that_branch_on_values(self):
        """They run the operators, step by step, that they run on the CPU; masked_training.py in whole steps of training."""
        for program in ("branches.py", "masked_training.py"):
            on_cpu = subprocess.run([PYTHON, PROGRAMS / program, "cpu"], check=True, capture_output=True, text=True,
                                    timeout=600).stdout
            on_gpu = self.run_in_child(program, "cuda").out
            self.assertEqual(len(on_cpu.splitlines()), 30)
            self.assertEqual(on_gpu.splitlines(), on_cpu.splitlines())

    def test_graphs_amp_and_recurrent_layers(self):
        for program in ("graph.py", "amp.py", "lstm.py"):
            with self.subTest(program=program):
                self.assertIn(" ok", self.run_in_child(program).out)

    def test_steps_in_a_cuda_graph(self):
        run = self.run_in_child("captured_step.py")
        report = run.report("kernel")
        # There are three ordinary steps. The capture of the fourth does not make that step; each launch of the graph
        # does.
        self.assertEqual(report["steps"], 43)
        rows = [row for row in report["rows"] if row["layer"] == "layer1.0.conv1"]
        self.assertEqual({row["phase"]: row["launches"] for row in rows}, {"forward": 43, "backward": 43})
        # A step outside of the graph takes as long.
        steps = sum(row["ideal_time_ns"] for row in report["rows"]) / 43 / 1e6
        self.assertGreater(float(re.search(r"^replay_ms (.*)$", run.out, re.MULTILINE).group(1)), 0.8 * steps)

    def test_copies_take_their_bytes_over_the_rate(self):
        for gpu in ("A100-SXM4-80GB", "H100-SXM5-80GB"):
            with self.subTest(gpu=gpu):
                board = board_of(gpu)
                run = self.run_in_child("copies.py", gpu=gpu)
                taken = {name: float(ms) * 1e-3 for name, ms in re.findall(r"^(\w+) ([\d.]+)$", run.out, re.MULTILINE)}
                count = 64 << 20
                over_pcie, in_memory = count / board["pcie_bytes_per_s"], count / board["dram_bytes_per_s"]
                expected = {"to_device": over_pcie, "to_host": over_pcie, "within": 2 * in_memory, "fill": in_memory,
                            "captured_to_device": over_pcie, "captured_fill": in_memory}
                self.assertEqual(set(taken), set(expected))
                for name, seconds in expected.items():
                    # Once, and a few microseconds before the first byte. PyTorch 2.6 fills two numbers before a graph.
                    self.assertGreaterEqual(taken[name], 0.999 * seconds, name)
                    self.assertLess(taken[name], seconds + (10e-6 if name.startswith("captured") else 4e-6), name)
                # The batch's copies are rows of their own: what the roof of PCIe allows, and what a stopwatch would show.
                rows = [row for row in run.report("kernel")["rows"]
                        if row["phase"] == "data" and row["signature"].startswith("f32[1024,1024]")]
                self.assertTrue(rows)
                for row in rows:
                    each = 1024 * 1024 * 4 * row["launches"]
                    self.assertEqual((row["pcie_bytes"], row["nvlink_bytes"]), (each, None))
                    self.assertEqual(row["dram_bytes"], each)
                    self.assertEqual(row["bound"], "PCIe")
                    ideal = each / board["pcie_bytes_per_s"]
                    self.assertAlmostEqual(row["ideal_time_ns"] * 1e-9, ideal, delta=1e-3 * ideal)
                    self.assertAlmostEqual(row["least_time_ns"] * 1e-9, ideal, delta=1e-3 * ideal)
                    # A latency and a rate below the data sheet's.
                    self.assertGreater(row["time_ns"], row["ideal_time_ns"] + 2000 * row["launches"])
                    self.assertLess(row["time_ns"], 1.3 * row["ideal_time_ns"] + 10000 * row["launches"])

    def test_an_all_reduce_takes_its_bytes_over_the_link(self):
        for gpu, link in (("A100-SXM4-80GB", "nvlink"), ("T4", "pcie")):
            with self.subTest(gpu=gpu):
                run = self.run_in_child(FORKED_RANKS, 2, PROGRAMS / "ddp.py", gpu=gpu, options=("--virtual-gpus", "2"))
                self.assertEqual(run.out.count("ddp ok"), 2, run.err)
                rows = [row for row in run.report("kernel")["rows"]
                        if row["op"] == "nccl:all_reduce" and row["signature"] == f"{64 << 20} B, 2 ranks"]
                self.assertEqual({row["phase"] for row in rows}, {"communication"})
                self.assertEqual({row["layer"] for row in rows}, {""})
                launches = sum(row["launches"] for row in rows)
                self.assertEqual(launches, 2 * 3, "a step of each rank")
                # Among two ranks 2 (n-1)/n of the bytes are the bytes.
                each = launches * (64 << 20)
                self.assertEqual(sum(row[link + "_bytes"] for row in rows), each)
                ideal = each / board_of(gpu)[link + "_bytes_per_s"]
                self.assertAlmostEqual(sum(row["ideal_time_ns"] for row in rows) * 1e-9, ideal, delta=1e-3 * ideal)
                self.assertEqual({row["bound"] for row in rows}, {"NVLink" if link == "nvlink" else "PCIe"})

    def test_compiled_kernels(self):
        for mode in ("default", "reduce-overhead"):
            with self.subTest(mode=mode), tempfile.TemporaryDirectory(prefix="rfinject-inductor-") as cache:
                # Its compiler tries its kernels out in the first steps. The first has Inductor's pool of compilers, too.
                run = (self.run_program if mode == "default" else functools.partial(self.run_in_child, **COMPILING))(
                    "compiled.py", mode, options=("--skip", "3"), environment={"TORCHINDUCTOR_CACHE_DIR": cache})
                report = run.report("kernel")
                self.assertEqual(report["steps"], 3)
                kernels = [row for row in report["rows"] if row["kernel"].startswith("triton_")]
                self.assertEqual({row["model"] for row in kernels}, {"Net"})
                self.assertEqual({row["phase"] for row in kernels}, {"forward", "backward"})
                # It runs once a step: it reads the product, of 4096 times 2048 numbers, and writes what the next one
                # reads.
                activation, = (row for row in kernels if row["phase"] == "forward")
                self.assertEqual(activation["launches"], 3)
                numbers = 4096 * 2048
                # Some versions of Inductor add the bias here, too, and keep which of the numbers were negative.
                self.assertIn(activation["compulsory_bytes"] / 3, (8 * numbers, 9 * numbers + 4 * 2048))
                self.assertIn(activation["flop"] / 3, (2 * numbers, 3 * numbers))  # relu is a comparison
                product = sum(row["model_flop"] for row in report["rows"]
                              if row["phase"] == "forward" and row["op"] in ("aten::addmm", "aten::mm"))
                self.assertEqual(product, 3 * 2 * 2 * 4096 * 2048 * 512)
                self.assertNotIn("their FLOP count as 0", run.err)

    def test_compiled_kernels_have_the_layer_that_was_compiled(self):
        with tempfile.TemporaryDirectory(prefix="rfinject-inductor-") as cache:
            run = self.run_in_child("compiled.py", "default", "blocks", options=("--skip", "3"),
                                    environment={"TORCHINDUCTOR_CACHE_DIR": cache}, **COMPILING)
        kernels = collections.defaultdict(set)
        for row in run.report("kernel")["rows"]:
            if row["kernel"] in ("aten::addmm", "aten::mm"):
                self.assertIn(row["layer"], [f"blocks.{i}.{part}" for i in range(2) for part in "ab"])
            if row["kernel"].startswith("triton_"):
                self.assertEqual(row["model"], "Deep")
                self.assertGreater(row["dram_bytes"], 0)
                # The gradient of a bias is of its layer.
                kernels[row["phase"], row["layer"][:len("blocks.0")]].add(row["kernel"])
        self.assertEqual(kernels.keys(), {(phase, layer) for phase in ("forward", "backward")
                                          for layer in ("blocks.0", "blocks.1")})
        for phase in ("forward", "backward"):
            # Both blocks are the same, and so are their kernels.
            self.assertEqual(kernels[phase, "blocks.0"], kernels[phase, "blocks.1"])
            self.assertTrue(all("_fused_" in name for name in kernels[phase, "blocks.0"]))

    def test_a_triton_without_its_assembler(self):
        # Triton as it is installed, made of links, but without ptxas.
        source = pathlib.Path(importlib.util.find_spec("triton").origin).parent
        with tempfile.TemporaryDirectory(prefix="rfinject-triton-") as folder:
            def link(path, to):
                if path.name.startswith("ptxas"):
                    return
                if path.is_dir() and path in (source, *(source / "backends" / "nvidia" / "bin").parents,
                                              source / "backends" / "nvidia" / "bin"):
                    to.mkdir()
                    for child in path.iterdir():
                        link(child, to / child.name)
                else:
                    to.symlink_to(path)
            link(source, pathlib.Path(folder) / "triton")
            run = self.run_program("compiled.py", code=1, environment={
                "PYTHONPATH": folder, "TORCHINDUCTOR_CACHE_DIR": folder + "/inductor",
                "TRITON_CACHE_DIR": folder + "/cache", "PATH": "/usr/bin:/bin"})
        self.assertIn("Cannot find ptxas", run.err)

    def test_several_devices(self):
        # Not its exit code: see "Not done yet" of docs/use/VIRTUAL_GPU.md.
        both = Run.in_child("data_parallel.py", options=("--virtual-gpus", "2"))
        self.addCleanup(both.close)
        self.assertIn("devices 2", both.out, both.err)
        too_few = self.run_in_child("data_parallel.py", "2", code=1)
        self.assertIn("asks for GPU 1", too_few.err)
        self.assertIn("--virtual-gpus", too_few.err)

    def test_what_is_not_there_says_its_name_once(self):
        run = self.run_in_child("missing.py")
        self.assertEqual(run.err.count("has no cusparseSpSM_createDescr"), 1, run.err)
        self.assertIn("RuntimeError", run.out)

    def test_every_function_that_is_not_there_says_its_name_once(self):
        run = self.run_in_child("stubs.py")
        called = re.findall(r"^stub (\w+)$", run.out, re.MULTILINE)
        self.assertGreater(len(called), 100)
        self.assertGreater(int(run.out.split("checked ")[1]), 100, "their types are in the headers beside torch")
        self.assertIn("cusparseGetErrorString", called)
        said = collections.Counter(re.findall(r"the virtual GPU has no (\w+):", run.err))
        self.assertEqual(said, dict.fromkeys(called, 1))

    def test_a_chip_that_is_in_no_table(self):
        run = self.run_program("where.py", gpu="Z9000", code=2)
        self.assertIn("--estimate Z9000: no such GPU in the table", run.err)
        self.assertEqual((run.out, run.err.count("\n")), ("", 1))

    def test_a_killed_program_leaves_its_complete_steps(self):
        for number in (signal.SIGKILL, signal.SIGTERM):
            with self.subTest(signal=number), tempfile.TemporaryDirectory(prefix="rfinject-virtual-gpu-") as folder:
                process = subprocess.Popen([RFINJECT, "--estimate", "A100-SXM4-80GB", "-o", folder + "/", PYTHON,
                                            str(PROGRAMS / "endless.py")], stderr=subprocess.PIPE, text=True)
                self.addCleanup(process.stderr.close)
                report, deadline = None, time.monotonic() + 300
                while report is None or report["steps"] < 3:
                    self.assertIsNone(process.poll(), "it ended by itself")
                    self.assertLess(time.monotonic(), deadline, "no steps in its trace")
                    found = subprocess.run([RFINJECT, "report", folder, "--by", "op", "--rows", "0", "--format", "json"],
                                           capture_output=True, text=True)
                    report = json.loads(found.stdout) if found.returncode == 0 else None
                process.send_signal(number)
                self.assertEqual(process.wait(60), -number)
                after = json.loads(subprocess.run([RFINJECT, "report", folder, "--format", "json"], check=True,
                                                  capture_output=True, text=True).stdout)
                self.assertGreaterEqual(after["steps"], report["steps"])
                # It might have been killed after any chunk: there are whole steps in all that was written then.
                path, = rfx_trace.trace_files(folder)
                trace = rfx_trace.Trace(path)
                for chunk in rfx_trace.read_chunks(path):
                    trace.add(chunk)
                    if trace.steps:
                        launches = {row["launches"] for row in trace.rows()
                                    if (row["op"], row["phase"]) in (
                                        ("aten::addmm", "forward"), ("aten::mm", "backward"),
                                        ("aten::_foreach_add_", "optimizer"))}
                        self.assertEqual(launches, {len(trace.steps)})
                self.assertEqual(len(trace.steps), after["steps"])

    def test_a_torch_for_another_cuda_runs_on_the_cpu(self):
        # A build of rfinject without the runtime that this torch needs.
        with tempfile.TemporaryDirectory(prefix="rfinject-virtual-gpu-") as folder:
            library = pathlib.Path(folder) / "librfinject.so"
            shutil.copy(LIBRARIES.parent / "librfinject.so", library)
            (pathlib.Path(folder) / "virtual_gpu").mkdir()
            for part in ("libcuda.so.1", "libnvidia-ml.so.1", "librfinject_virtual_gpu.so"):
                (pathlib.Path(folder) / "virtual_gpu" / part).symlink_to(LIBRARIES / part)
            run = self.run_program("where.py", environment={"RFINJECT_LIBRARY": str(library)})
        self.assertIn("cuda False", run.out)
        self.assertRegex(run.err, r"no virtual GPU: this build of rfinject has no runtime for CUDA 1\d .*scripts/setup fetches")

    def test_what_a_gradient_scaler_reads_is_known(self):
        self.assertNotIn("they are zeros", self.run_in_child("train.py", "resnet18", 2, "amp").err)
        self.assertNotIn("they are zeros", self.run_in_child("where.py").err)

    def test_on_the_cpu_if_asked(self):
        run = self.run_program("where.py", options=("--estimate-on", "cpu"))
        self.assertIn("cuda False", run.out)
        hidden = self.run_program("where.py", environment={"CUDA_VISIBLE_DEVICES": ""})
        self.assertIn("cuda False", hidden.out)
        for name in ("", "torch", "torch.nn"):
            with self.subTest(imported=name):
                self.assertIn("cuda True", self.run_program("where.py", *filter(None, [name])).out)

    def test_processes_of_all_kinds(self):
        # A child of fork cannot use a GPU that its parent uses; PyTorch itself refuses.
        ways = {"fork": "trained", "fork twice": "trained", "loader": "trained", "fork after": "Cannot re-initialize CUDA",
                "spawn": "trained", "forkserver": "trained"}
        for device, options, collector in (("cpu", ("--estimate-on", "cpu"), "estimator"), ("cuda", (), "virtual-gpu")):
            run = self.run_program("processes.py", device, options=options, code=7)
            said = {way: (int(pid), outcome) for way, pid, outcome in
                    re.findall(r"^([a-z ]+) (\d+) (.*)$", run.out, re.MULTILINE)}
            self.assertEqual(said.keys(), ways.keys(), run.err)
            traces = run.processes()
            for way, expected in ways.items():
                with self.subTest(device=device, way=way):
                    pid, outcome = said[way]
                    trained = device == "cpu" or expected == "trained"
                    self.assertRegex(outcome, "trained" if trained else expected)
                    # Who trained has a trace of its own steps.
                    self.assertEqual(traces.pop(pid, None), (collector, 3) if trained else None)
            self.assertEqual(traces, {}, "nobody else has one")

    def test_workers_are_forked_and_processes_spawned(self):
        self.assertIn("workers ok", self.run_program("workers.py").out)
        self.run_program("workers.py", "exit", code=7)

    def test_forks_of_a_program_that_does_not_use_the_gpu(self):
        words = ("ask", "before")
        plain = subprocess.run([PYTHON, str(PROGRAMS / "forks.py"), *words], capture_output=True, text=True,
                               timeout=600)
        self.assertEqual((plain.returncode, plain.stdout.count("children {0}")), (0, 2), plain.stderr)
        self.assertEqual(self.run_program("forks.py", *words).out, plain.stdout)

    def test_a_program_may_end_right_after_its_backward(self):
        with tempfile.TemporaryDirectory(prefix="rfinject-virtual-gpu-") as folder:
            command = [RFINJECT, "--estimate", "A100-SXM4-80GB", "-o", folder + "/", PYTHON, PROGRAMS / "ends_after_backward.py"]
            for _ in range(5):  # without the wait of engine_threads.h, about half of the runs abort
                result = subprocess.run(command, capture_output=True, text=True, timeout=600)
                self.assertEqual(result.returncode, 0, result.stderr)

    def test_the_gpu_may_be_used_late(self):
        run = self.run_program("forks.py", "before", "late")
        self.assertIn("devices of the gradients {'cpu'}", run.out)

    def test_a_child_of_fork_may_ask_the_driver(self):
        self.assertIn("children {0}", self.run_program("driver_in_child.py").out)

    def test_ranks_of_one_machine(self):
        run = self.run_program("ranks.py", launcher=("-m", "torch.distributed.run", "--nproc_per_node", "4"))
        self.assertEqual(run.out.count("ranks ok"), 4, run.err)
        self.assertEqual(run.report("op")["process_count"], 4)

    def test_a_rank_that_is_gone_is_named(self):
        run = self.run_in_child(FORKED_RANKS, 2, PROGRAMS / "rank_gone.py", options=("--virtual-gpus", "2"))
        self.assertIn("gone ok", run.out)
        self.assertIn("AllReduce: rank 1 is gone", run.err)


if __name__ == "__main__":
    reason = why_no_virtual_gpu(LIBRARIES)
    if reason is not None:
        print(f"note: skipped: {reason}")
        sys.exit(77)
    unittest.main()
