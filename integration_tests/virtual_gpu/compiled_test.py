"""What torch.compile makes of a network has the FLOP, the bytes and the layers of that network.

    compiled_test.py [unittest arguments]
RFINJECT names the command, RFINJECT_PYTHON the interpreter (default: the one that runs this file). Without a torch that is
a CUDA build and has Triton, or where NVIDIA's driver is, all is skipped. Each network is compiled once: its files are counted
by compiled_bytes.py, which shares nothing with what reads them. RFX_HARDWARE_PATH=all: also networks that people train.
"""
import collections
import importlib.metadata
import importlib.util
import os
import pathlib
import re
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import program_run  # noqa: E402
import torch_exit  # noqa: E402
from compiled_bytes import BytesOfModule, modules_of  # noqa: E402
from compiled_flop import differences  # noqa: E402
from cuda_torch import why_no_virtual_gpu  # noqa: E402

LIBRARIES = pathlib.Path(program_run.RFINJECT).resolve().parent.parent / "lib" / "virtual_gpu"
PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
NETWORKS = {name: "compiled_model.py" for name in ("perceptron", "convolutions", "transformer")}
TRAINED = {name: "compiled_network.py" for name in ("resnet18", "resnet50", "vit", "gpt_amp", "unet", "dcgan")}
LAYS_OUT = re.compile(r"triton_poi_fused(_convolution(_backward)?)?_\d+$")
ALL = os.environ.get("RFX_HARDWARE_PATH") == "all"
TORCH = importlib.metadata.version("torch") if importlib.util.find_spec("torch") else "0"
VERSION = tuple(map(int, re.findall(r"\d+", TORCH)[:2]))
LOSSES = ("CrossEntropyLoss", "BCELoss")  # which are not compiled
LOSS = re.compile("aten::(_log_softmax|nll_loss)")  # where the program calls functions
STEPS = 2  # of five; those that compile, and try kernels out, are left out
PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::convolution", "aten::convolution_backward",
            "aten::_scaled_dot_product_efficient_attention", "aten::_scaled_dot_product_efficient_attention_backward",
            "aten::_scaled_dot_product_flash_attention", "aten::_scaled_dot_product_flash_attention_backward")


class Run:
    """A program that has run in a child of a process that has torch and Inductor: what it wrote, and its report by kernel."""

    def __init__(self, program, *arguments, cache, options=("--steps", str(STEPS))):
        run = program_run.Run.in_child(
            program, *arguments, options=options, environment={"TORCHINDUCTOR_CACHE_DIR": str(cache)}, **program_run.COMPILING)
        try:
            self.out, self.err, self.code = run.out, run.err, run.code
            self.report = run.report("kernel") if self.code == 0 else None
        finally:
            run.close()
        self.rows = self.report["rows"] if self.report else []


def work(rows, phase):
    """The rows of the models' forward or backward."""
    return [row for row in rows if row["phase"] == phase and row["model"] not in LOSSES and
            not (row["model"] is None and LOSS.match(row["op"]))]


def time_in(rows, chosen=lambda row: True):
    return sum(row["time_ns"] for row in rows if chosen(row))


def layers_of(rows, phase, chosen):
    """The layers that rows are of, each by itself: (model, layer)."""
    return {(row["model"], layer) for row in work(rows, phase) if chosen(row)
            for layer in (row["layer"] or "").split(" + ") if not layer.endswith(" more")}


def is_fused(row):
    return row["kernel"].startswith("triton_")


def flop(rows, chosen):
    counts = collections.Counter()
    for row in rows:
        if chosen(row):
            counts[row["phase"]] += row["model_flop"]
    return dict(counts)


class Compiled:
    """Each network of `networks`, compiled and not."""
    networks = {}

    @classmethod
    def setUpClass(cls):
        cls.runs = {}
        for network, program in cls.networks.items():
            folder = tempfile.TemporaryDirectory(prefix="rfinject-inductor-")
            cls.addClassCleanup(folder.cleanup)
            cls.runs[network] = (Run(program, network, cache=folder.name),
                                 Run(program, network, "compiled", cache=folder.name), folder.name)
            for run in cls.runs[network][:2]:
                assert run.code == 0, run.err

    def each(self):
        for network, (eager, compiled, cache) in self.runs.items():
            with self.subTest(network=network):
                yield network, eager, compiled, cache

    def test_steps_that_compile_are_left_out(self):
        for _, eager, compiled, _ in self.each():
            self.assertEqual(eager.report["steps"], compiled.report["steps"])
            for run in (eager, compiled):
                said = [line["text"] for line in run.report["diagnostics"] if line["id"] == "compiling-steps"]
                self.assertEqual(len(said), 1 if run is compiled else 0)
            for row in filter(is_fused, compiled.rows):  # who tries a kernel out launches it a hundred times
                self.assertLess(row["launches"], 16 * STEPS, row["kernel"])

    def test_products_and_convolutions_have_the_flop_of_the_eager_run(self):
        for _, eager, compiled, _ in self.each():
            of = [flop(run.rows, lambda row: row["op"] in PRODUCTS) for run in (eager, compiled)]
            self.assertEqual(*of)
            self.assertEqual(of[0].keys(), {"forward", "backward"})

    def test_they_have_them_layer_by_layer(self):
        for _, eager, compiled, _ in self.each():
            by_layer = []
            for run in (eager, compiled):
                counts = collections.Counter()
                for row in run.rows:
                    if row["op"] in PRODUCTS:
                        counts[row["model"], row["phase"], row["layer"]] += row["model_flop"]
                by_layer.append(counts)
            self.assertEqual(*by_layer)

    def test_fused_kernels_have_the_flop_of_what_they_fuse(self):
        for network, eager, compiled, _ in self.each():
            listed = differences(network, VERSION, eager.rows, compiled.rows)
            for phase in ("forward", "backward"):
                loose = [sum(row["model_flop"] for row in work(run.rows, phase) if row["op"] not in PRODUCTS)
                         for run in (eager, compiled)]
                self.assertEqual(loose[0] + sum(listed[phase].values()), loose[1], (phase, loose, dict(listed[phase])))
                self.assertGreater(sum(row["model_flop"] for row in work(compiled.rows, phase) if is_fused(row)), 0)
            self.assertNotIn("kernels of Triton's", compiled.err)

    def test_bytes_are_those_of_the_buffers(self):
        for network, _, compiled, cache in self.each():
            modules = [BytesOfModule(source) for source in modules_of(cache)]
            counted, calls = (sum((getattr(module, of) for module in modules), collections.Counter())
                              for of in ("by_kernel", "calls"))
            reported, launches = collections.Counter(), collections.Counter()
            for row in filter(is_fused, compiled.rows):
                reported[row["kernel"]] += row["compulsory_bytes"]
                launches[row["kernel"]] += row["launches"]
            self.assertTrue(counted)
            self.assertEqual(reported.keys(), counted.keys())
            for kernel, count in counted.items():
                if network != "dcgan":  # whose modules run several times a step, and not all as often
                    self.assertEqual(launches[kernel], calls[kernel] * STEPS, kernel)
                self.assertEqual(reported[kernel] * calls[kernel], count * launches[kernel], kernel)

    def test_bytes_are_at_most_those_of_the_eager_run(self):
        """But for what a norm reads again because it takes two kernels, weights and images that are laid out for a
        convolution, and gradients that autograd copies into the layout of their parameters."""
        for network, eager, compiled, cache in self.each():
            modules = [BytesOfModule(source) for source in modules_of(cache)]
            counted = sum((module.by_kernel for module in modules), collections.Counter())
            again = sum((module.read_again for module in modules), collections.Counter())
            for phase in ("forward", "backward"):
                count = 0
                for row in work(compiled.rows, phase):
                    share = again[row["kernel"]] / counted[row["kernel"]] if is_fused(row) else row["op"] == "aten::copy_"
                    share = 1 if LAYS_OUT.match(row["kernel"]) else share
                    count += row["compulsory_bytes"] * (1 - share)
                self.assertLessEqual(count, sum(row["compulsory_bytes"] for row in work(eager.rows, phase)), phase)

    def test_time_has_a_layer(self):
        for _, eager, compiled, _ in self.each():
            for phase in ("forward", "backward"):
                # What the model's own forward computes (an addition, a mean) is of no layer below it.
                rows = work(compiled.rows, phase)
                self.assertLessEqual(time_in(rows, lambda row: not row["layer"]), 0.03 * time_in(rows), phase)
            known = {row["layer"] for row in eager.rows}
            for row in compiled.rows:
                for layer in row["layer"].split(" + ") if row["layer"] else ():
                    self.assertTrue(layer in known or layer.endswith(" more") or any(
                        name.startswith(layer + ".") for name in known) or layer == row["model"], layer)


class Networks(Compiled, unittest.TestCase):
    networks = NETWORKS

    def test_what_is_fused_is_a_row_of_its_layers(self):
        rows = self.runs["convolutions"][1].rows
        layers = {(row["phase"], row["layer"]) for row in rows if row["kernel"].startswith("triton_")}
        self.assertIn(("forward", "layer1.0.bn1 + layer1.0.relu"), layers)
        self.assertTrue(any(phase == "backward" and "layer1.1.bn2" in layer for phase, layer in layers), layers)

    def test_code_from_the_cache_has_flop_and_bytes(self):
        _, compiled, cache = self.runs["perceptron"]
        before = {path: path.read_bytes() for path in pathlib.Path(cache).rglob("*.py")}
        again = Run("compiled_model.py", "perceptron", "compiled", cache=cache)
        self.assertEqual(again.code, 0, again.err)
        self.assertEqual(before, {path: path.read_bytes() for path in pathlib.Path(cache).rglob("*.py")})

        # Up to torch 2.6 the comments of the code have no shapes, and only Inductor's objects do.
        has_shapes = any(' : Tensor "' in source for source in modules_of(cache))

        def sums(run):
            counts = collections.Counter()
            for row in filter(is_fused, run.rows):
                counts[row["kernel"], "bytes"] += row["compulsory_bytes"]
                counts[row["phase"], "flop"] += row["model_flop"] if has_shapes else 0
            return counts
        self.assertEqual(sums(again), sums(compiled))
        if not has_shapes:
            self.assertEqual([row["kernel"] for row in filter(is_fused, again.rows) if row["model_flop"]], [])
            self.assertIn("their FLOP count as 0", again.err)

    def test_layers_are_those_of_a_run_in_which_each_is_compiled_by_itself(self):
        for network in ("perceptron", "convolutions"):
            with self.subTest(network=network), tempfile.TemporaryDirectory(prefix="rfinject-inductor-") as cache:
                alone = Run(NETWORKS[network], network, "leaves", cache=cache)
                self.assertEqual(alone.code, 0, alone.err)
                compare_layers(self, alone, self.runs[network][1])


@unittest.skipUnless(ALL, "RFX_HARDWARE_PATH is not \"all\"")
class TrainedNetworks(Compiled, unittest.TestCase):
    networks = TRAINED

    def test_layers_are_those_of_a_run_in_which_each_is_compiled_by_itself(self):
        for network in TRAINED:
            with self.subTest(network=network), tempfile.TemporaryDirectory(prefix="rfinject-inductor-") as cache:
                alone = Run(TRAINED[network], network, "leaves", cache=cache)
                self.assertEqual(alone.code, 0, alone.err)
                compare_layers(self, alone, self.runs[network][1])


def compare_layers(test, alone, together):
    """Holds a compiled network against the same with each module without children compiled by itself: there, the module
    that is called is the layer of all that its code launches."""
    for phase in ("forward", "backward"):
        # A copy, or another layout of a layer's operands, may be part of another kernel, or not needed, in the whole.
        known = layers_of(alone.rows, phase, lambda row: is_fused(row) and not LAYS_OUT.match(row["kernel"]) and
                          not row["kernel"].startswith("triton_poi_fused_clone_"))
        found = layers_of(together.rows, phase, is_fused)
        cut = any((row["layer"] or "").endswith(" more") for row in work(together.rows, phase))
        test.assertTrue(known)
        if not cut:
            test.assertEqual(known - found, set(), phase)
        # Modules with children compute between those: their own rows are eager in the other run.
        eager = layers_of(alone.rows, phase, lambda row: not is_fused(row))
        test.assertEqual({layer for layer in found if layer not in known and layer not in eager}, set(), phase)


class OtherCode(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="rfinject-inductor-")
        self.addCleanup(folder.cleanup)
        self.cache = pathlib.Path(folder.name)

    def test_a_kernel_of_the_programs_own(self):
        run = Run("user_kernel.py", cache=self.cache, options=("--skip", "2"))
        self.assertEqual(run.code, 0, run.err)
        row, = (row for row in run.rows if row["kernel"].startswith("doubled"))
        self.assertEqual((row["model_flop"], row["compulsory_bytes"] / row["launches"]), (0, 2 * 4 << 20))
        self.assertIn("their FLOP count as 0", run.err)

    def test_flex_attention_computes_the_blocks_that_its_mask_leaves(self):
        if VERSION < (2, 8):
            self.skipTest("note: the names of its kernels' parameters are those of newer torches")
        run = Run("flex_attention.py", cache=self.cache, options=("--skip", "2"))
        self.assertEqual(run.code, 0, run.err)
        every = 2 * 2 * 2 * 512 * 512 * (64 + 64)  # batches, heads, 2 FLOP; each query sees each key
        left = every * (4 * 5 // 2) // (4 * 4)     # of four rows of four blocks one, two, three and four
        found = collections.Counter()
        for row in run.rows:
            if row["flop_bf16_tc"]:
                found[row["model"], row["phase"]] += row["flop_bf16_tc"] / run.report["steps"]
        self.assertEqual(found["Attention", "forward"], every)
        self.assertEqual(found["Causal", "forward"], left)
        # The kernel computes q k^T again: five products where the forward has two.
        self.assertEqual(found["Attention", "backward"], every * 5 // 2)
        self.assertEqual(found["Causal", "backward"], left * 5 // 2)
        self.assertNotRegex(run.err, "mask-blocks")

    def test_what_a_kernel_writes_to_in_place_is_not_known_any_more(self):
        run = Run("compiled_counter.py", cache=self.cache, options=())
        self.assertEqual(run.code, 0, run.err)
        if "no small tensors are computed" in run.err:
            self.skipTest("nothing is known of memory on this torch")
        # The first read, of what the host wrote, is right; the second is of what was not computed.
        self.assertIn("before 0.0", run.out)
        self.assertIn("compiled_counter.py:22 reads results that the virtual GPU did not compute", run.err)

    def test_graph_breaks_have_their_line_their_reason_and_what_crosses_them(self):
        lines = (PROGRAMS / "graph_breaks.py").read_text().splitlines()
        calls, reads = (next(number for number, line in enumerate(lines, 1) if f"# the {which} break" in line)
                        for which in ("first", "second"))
        run = Run("graph_breaks.py", cache=self.cache)
        self.assertEqual(run.code, 0, run.err)
        first, second = run.report["graph_breaks"]  # the largest first
        for found, line, word in ((first, calls, "not_traced"), (second, reads, "item")):
            self.assertEqual((found["file"], found["line"], found["function"], found["count"]),
                             ("graph_breaks.py", line, "forward", 1))
            self.assertIn(word, found["reason"])
            self.assertNotIn("0x", found["reason"])
        # 2048 rows of 1024 numbers, and 2048 of 256 with their sum.
        self.assertEqual((first["bytes"], second["bytes"]), (4 * 2048 * 1024, 4 * (2048 * 256 + 1)))
        whole = Run("compiled_model.py", "perceptron", "compiled", cache=self.cache)
        self.assertNotIn("graph_breaks", whole.report)

    def test_generated_files_are_those_of_a_run_without_rfinject(self):
        # On the CPU, where both can run. Files of the same content have the same names, which hold their hashes.
        variables = program_run.VARIABLES | dict(program_run.COMPILING["begun_with"])
        files = []
        for command in ((), ("--estimate", "A100-SXM4-80GB", "--estimate-on", "cpu")):
            cache = self.cache / "same"
            with tempfile.TemporaryDirectory(prefix="rfinject-compiled-") as folder:
                injected = [program_run.RFINJECT, *command, "-o", folder + "/"] if command else []
                run = torch_exit.run(
                    [*injected, program_run.PYTHON, str(PROGRAMS / "compiled_model.py"), "perceptron", "compiled"], folder,
                    env=variables | {"TORCHINDUCTOR_CACHE_DIR": str(cache)}, timeout=1200)
            self.assertEqual(run.returncode, 0, run.stderr)
            files.append({str(path.relative_to(cache)): path.read_bytes()
                          for pattern in ("*.py", "*.cpp", "*.h") for path in cache.rglob(pattern)})
            files[-1].update({"key " + str(path.relative_to(cache)): b""
                              for keys in ("fxgraph/*/*", "aotautograd/*") for path in cache.glob(keys)})
            cache.rename(self.cache / str(len(files)))
        self.assertTrue(any(name.startswith("key ") for name in files[0]))
        self.assertEqual(files[0].keys(), files[1].keys())
        self.assertEqual(files[0], files[1])


def why_not():
    if why := why_no_virtual_gpu(LIBRARIES):
        return why
    return None if importlib.util.find_spec("triton") else "Triton is not here"


if __name__ == "__main__":
    reason = why_not()
    if reason is not None:
        print(f"note: skipped: {reason}")
        sys.exit(77)
    unittest.main()
