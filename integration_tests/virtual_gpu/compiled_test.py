"""What torch.compile makes of a network has the FLOP, the bytes and the layers of that network.

    compiled_test.py [unittest arguments]
RFINJECT names the command, RFINJECT_PYTHON the interpreter (default: the one that runs this file). Without a torch that is
a CUDA build, or where NVIDIA's driver is, all is skipped, and so is all with a torch before 2.15, with which this was not
run. Each network is compiled once: its files are counted by the program below, which shares nothing with what reads them.
"""
import ast
import collections
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import torch_exit  # noqa: E402
from cuda_torch import why_no_virtual_gpu  # noqa: E402

RFINJECT = os.environ["RFINJECT"]
PYTHON = os.environ.get("RFINJECT_PYTHON") or sys.executable
LIBRARIES = pathlib.Path(RFINJECT).resolve().parent.parent / "lib" / "virtual_gpu"
PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
NETWORKS = ("perceptron", "convolutions", "transformer")
STEPS = 2  # of five; in the first ones kernels are tried out
PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::convolution", "aten::convolution_backward",
            "aten::_scaled_dot_product_efficient_attention", "aten::_scaled_dot_product_efficient_attention_backward",
            "aten::_scaled_dot_product_flash_attention", "aten::_scaled_dot_product_flash_attention_backward")


class Run:
    """A finished program: what it wrote, and its report by kernel."""

    def __init__(self, program, *arguments, cache, command=("--estimate", "A100-SXM4-80GB", "--skip", "3")):
        with tempfile.TemporaryDirectory(prefix="rfinject-compiled-") as folder:
            variables = {name: value for name, value in os.environ.items()
                         if not name.startswith("RFINJECT_") and name != "CUDA_VISIBLE_DEVICES"}
            variables.update({"TORCHINDUCTOR_CACHE_DIR": str(cache)})
            injected = [RFINJECT, *command, "-o", folder + "/"] if command else []
            result = torch_exit.run([*injected, PYTHON, str(PROGRAMS / program), *arguments], folder, env=variables,
                                    timeout=600)
            self.out, self.err, self.code = result.stdout, result.stderr, result.returncode
            self.report = None
            if command and self.code == 0:
                text = subprocess.run([RFINJECT, "report", folder, "--by", "kernel", "--rows", "0", "--format", "json"],
                                      check=True, capture_output=True, text=True).stdout
                report = json.loads(text)
                self.report = report["reports"][0] if "reports" in report else report
                self.rows = self.report["rows"]


SIZES = {"float32": 4, "float16": 2, "bfloat16": 2, "float64": 8, "int64": 8, "int32": 4, "int8": 1, "uint8": 1, "bool": 1}


class BytesOfModule(ast.NodeVisitor):
    """Counts what the kernels of one generated module read and write, from its syntax tree: `by_kernel`, a step."""

    def __init__(self, source):
        self.buffers, self.kernels, self.by_kernel = {}, {}, collections.Counter()
        tree = ast.parse(source)
        for node in tree.body:  # the shapes of what it is given
            if isinstance(node, ast.FunctionDef) and node.name == "get_args":
                self.visit(node)
        for node in tree.body:
            if isinstance(node, ast.Assign) and "async_compile.triton(" in ast.unparse(node.value)[:30]:
                self.define(node.value.args[0].value, node.value.args[1].value)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name == "call":
                self.generic_visit(node)

    def define(self, name, source):
        function = next(node for node in ast.walk(ast.parse(source))
                        if isinstance(node, ast.FunctionDef) and node.name == name)
        uses = collections.defaultdict(set)
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("tl.load", "tl.store", "tl.atomic_add"):
                verb = ast.unparse(node.func)
                for part in ast.walk(node.args[0]):
                    if isinstance(part, ast.Name) and "_ptr" in part.id:
                        uses[part.id] |= {"load", "store"} if verb == "tl.atomic_add" else {verb[3:]}
        self.kernels[name] = [(argument.arg, uses[argument.arg]) for argument in function.args.args if "_ptr" in argument.arg]

    def size(self, node):
        """Elements in memory, and bytes of one, of an expression."""
        if isinstance(node, ast.Name):
            return self.buffers.get(node.id)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "reinterpret_tensor":
            return self.elements(node.args[1], node.args[2]), self.size(node.args[0])[1]
        return None

    @staticmethod
    def elements(sizes, strides):
        count = 1
        for size, stride in zip(ast.literal_eval(sizes), ast.literal_eval(strides)):
            count *= size if stride else 1
        return count

    def visit_Assign(self, node):
        self.generic_visit(node)
        name, value = ast.unparse(node.targets[0]), node.value
        if isinstance(value, ast.Call) and ast.unparse(value.func).startswith(("empty_strided", "rand_strided")):
            type_ = (ast.unparse(value.args[2]) if len(value.args) > 2 else
                     next(ast.unparse(word.value) for word in value.keywords if word.arg == "dtype"))
            self.buffers[name] = self.elements(*value.args[:2]), SIZES[type_.rpartition(".")[2]]
        elif self.size(value) is not None:
            self.buffers[name] = self.size(value)

    def visit_Call(self, node):
        self.generic_visit(node)
        if ast.unparse(node.func) == "assert_tensor_metadata":  # of what an operator gave back
            self.buffers[ast.unparse(node.args[0])] = (self.elements(*node.args[1:3]),
                                                       SIZES[ast.unparse(node.args[3]).rpartition(".")[2]])
        if not isinstance(node.func, ast.Attribute) or node.func.attr != "run":
            return
        kernel = ast.unparse(node.func.value)
        read, written = set(), set()
        for (_, uses), argument in zip(self.kernels[kernel], node.args):
            entry = ast.unparse(argument), *self.size(argument)
            if "load" in uses:
                read.add(entry)
            if "store" in uses:
                written.add(entry)
        self.by_kernel[kernel] += sum(count * size for _, count, size in (*read, *written))


def modules_of(cache):
    """The sources of the generated modules in a cache."""
    return [text for path in sorted(pathlib.Path(cache).rglob("*.py")) if "AsyncCompile()" in (text := path.read_text())]


def with_layer(rows):
    """The share of the time of forward and backward that has a layer below the model."""
    rows = [row for row in rows if row["phase"] in ("forward", "backward") and row["model"] != "CrossEntropyLoss"]
    return sum(row["time_ns"] for row in rows if row["layer"]) / sum(row["time_ns"] for row in rows)


def flop(rows, chosen):
    counts = collections.Counter()
    for row in rows:
        if chosen(row):
            counts[row["phase"]] += row["model_flop"]
    return dict(counts)


class Networks(unittest.TestCase):
    """Each network, compiled and not."""

    @classmethod
    def setUpClass(cls):
        cls.runs = {}
        for network in NETWORKS:
            folder = tempfile.TemporaryDirectory(prefix="rfinject-inductor-")
            cls.addClassCleanup(folder.cleanup)
            cls.runs[network] = (Run("compiled_model.py", network, cache=folder.name),
                                 Run("compiled_model.py", network, "compiled", cache=folder.name), folder.name)
            for run in cls.runs[network][:2]:
                assert run.code == 0, run.err

    def each(self):
        for network, (eager, compiled, cache) in self.runs.items():
            with self.subTest(network=network):
                yield network, eager, compiled, cache

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
                        counts[row["phase"], row["layer"]] += row["model_flop"]
                by_layer.append(counts)
            self.assertEqual(*by_layer)

    def test_fused_kernels_have_flop(self):
        for _, eager, compiled, _ in self.each():
            fused = flop(compiled.rows, lambda row: row["kernel"].startswith("triton_"))
            loose = flop(eager.rows, lambda row: row["op"] not in PRODUCTS and row["model"] != "CrossEntropyLoss")
            for phase in ("forward", "backward"):
                # What Inductor decomposes an operator into is counted as it runs it: batch norm's backward is fewer.
                self.assertGreater(fused[phase], 0.4 * loose[phase])
                self.assertLess(fused[phase], 2 * loose[phase])
            self.assertNotIn("kernels of Triton's", compiled.err)

    def test_bytes_are_those_of_the_buffers(self):
        for network, _, compiled, cache in self.each():
            counted = sum((BytesOfModule(source).by_kernel for source in modules_of(cache)), collections.Counter())
            reported = collections.Counter()
            for row in compiled.rows:
                if row["kernel"].startswith("triton_"):
                    reported[row["kernel"]] += row["compulsory_bytes"]
            self.assertTrue(counted)
            self.assertEqual(reported.keys(), counted.keys())
            for kernel, count in counted.items():
                if network == "transformer" and count * STEPS != reported[kernel]:
                    # Rows of the table are looked up, and parts of a tensor are read: less than all of it.
                    self.assertLess(reported[kernel], count * STEPS, kernel)
                    continue
                self.assertEqual(reported[kernel], count * STEPS, kernel)

    def test_time_has_a_layer(self):
        for network, eager, compiled, _ in self.each():
            of_eager, of_compiled = with_layer(eager.rows), with_layer(compiled.rows)
            self.assertGreater(of_compiled, 0.97 if network != "transformer" else 0.9, f"eager: {of_eager}")
            known = {row["layer"] for row in eager.rows}
            for row in compiled.rows:
                for layer in row["layer"].split(" + ") if row["layer"] else ():
                    self.assertTrue(layer in known or layer.endswith(" more") or any(
                        name.startswith(layer + ".") for name in known) or layer == row["model"], layer)

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

        def sums(run):
            counts = collections.Counter()
            for row in run.rows:
                if row["kernel"].startswith("triton_"):
                    counts[row["kernel"], "bytes"] += row["compulsory_bytes"]
                    counts[row["phase"], "flop"] += row["model_flop"]
            return counts
        self.assertEqual(sums(again), sums(compiled))


class OtherCode(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="rfinject-inductor-")
        self.addCleanup(folder.cleanup)
        self.cache = pathlib.Path(folder.name)

    def test_a_kernel_of_the_programs_own(self):
        run = Run("user_kernel.py", cache=self.cache, command=("--estimate", "A100-SXM4-80GB", "--skip", "2"))
        self.assertEqual(run.code, 0, run.err)
        row, = (row for row in run.rows if row["kernel"].startswith("doubled"))
        self.assertEqual((row["model_flop"], row["compulsory_bytes"] / row["launches"]), (0, 2 * 4 << 20))
        self.assertIn("their FLOP count as 0", run.err)

    def test_generated_files_are_those_of_a_run_without_rfinject(self):
        # On the CPU, where both can run. Files of the same content have the same names, which hold their hashes.
        files = []
        for command in ((), ("--estimate", "A100-SXM4-80GB", "--estimate-on", "cpu")):
            cache = self.cache / "same"
            run = Run("compiled_model.py", "perceptron", "compiled", cache=cache, command=command)
            self.assertEqual(run.code, 0, run.err)
            files.append({str(path.relative_to(cache)): path.read_bytes()
                          for pattern in ("*.py", "*.cpp", "*.h") for path in cache.rglob(pattern)})
            files[-1].update({"key " + str(path.relative_to(cache)): b"" for path in cache.glob("fxgraph/*/*")})
            cache.rename(self.cache / str(len(files)))
        self.assertTrue(any(name.startswith("key ") for name in files[0]))
        self.assertEqual(files[0].keys(), files[1].keys())
        self.assertEqual(files[0], files[1])


def why_not():
    if why := why_no_virtual_gpu(LIBRARIES):
        return why
    version = importlib.metadata.version("torch").split(".")[:2]
    return None if tuple(map(int, version)) >= (2, 15) else "a torch before 2.15"


if __name__ == "__main__":
    reason = why_not()
    if reason is not None:
        print(f"note: skipped: {reason}")
        sys.exit(77)
    unittest.main()
