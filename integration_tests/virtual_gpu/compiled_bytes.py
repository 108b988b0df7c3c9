"""Counts what the kernels of the modules that Inductor generated read and write, from their syntax trees."""
import ast
import collections
import pathlib
import re

# By Triton's names of the types that pointers point to.
SIZES = {"fp64": 8, "i64": 8, "u64": 8, "fp32": 4, "i32": 4, "u32": 4, "fp16": 2, "bf16": 2, "i16": 2, "i8": 1, "u8": 1, "i1": 1}
# Operators with several results, whose shapes some versions do not say: those of which operands they have.
RESULTS = {"convolution_backward": (1, 2), "_scaled_dot_product_flash_attention": (0,),
           "_scaled_dot_product_efficient_attention": (0,), "_scaled_dot_product_flash_attention_backward": (1, 2, 3),
           "_scaled_dot_product_efficient_attention_backward": (1, 2, 3)}
# Operators that need a sum over what they then read again.
NORMS = ("native_batch_norm_backward", "native_batch_norm_legit_functional", "native_layer_norm_backward",
         "native_layer_norm", "softmax")


def numbers(node):
    """A tuple of numbers, which some versions write as products: (16, 3*(64 // 2))."""
    for part in ast.walk(node):
        if not isinstance(part, (ast.Tuple, ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Load)):
            raise ValueError(f"no number: {ast.unparse(node)}")
    return eval(compile(ast.Expression(node), "sizes", "eval"), {"__builtins__": {}})


class BytesOfModule(ast.NodeVisitor):
    """By kernel of one generated module, all of its calls: how many `calls`, `by_kernel` bytes, and of these `read_again`: those
    of buffers that a reduction of the same operator has read before, because the operator takes two kernels."""

    def __init__(self, source):
        self.elements_of, self.kernels = {}, {}
        self.results = {}  # of operators with several: the elements of each
        self.by_kernel, self.read_again, self.calls = (collections.Counter() for _ in range(3))
        self.reductions = collections.defaultdict(set)  # of a buffer: the operators of the reductions that have read it
        tree = ast.parse(source)
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        for node in functions:  # the shapes of what it is given
            if node.name in ("get_args", "benchmark_compiled_module"):
                self.generic_visit(node)
        for node in tree.body:
            if isinstance(node, ast.Assign) and "async_compile.triton(" in ast.unparse(node.value)[:30]:
                self.define(node.value.args[0].value, node.value.args[1].value)
        for node in functions:
            if node.name == "call":
                self.generic_visit(node)

    def define(self, name, source):
        function = next(node for node in ast.walk(ast.parse(source))
                        if isinstance(node, ast.FunctionDef) and node.name == name)
        types = dict(re.findall(r"'(\w+)': '\*(\w+)'", re.search(r"'signature': \{([^}]*)\}", source)[1]))
        uses = collections.defaultdict(collections.Counter)  # of a pointer: places that load, and that store
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("tl.load", "tl.store", "tl.atomic_add"):
                verb = ast.unparse(node.func)
                for part in ast.walk(node.args[0]):
                    if isinstance(part, ast.Name) and "_ptr" in part.id:
                        uses[part.id].update(["load", "store"] if verb == "tl.atomic_add" else [verb[3:]])
        pointers = [argument.arg for argument in function.args.args if "_ptr" in argument.arg]
        scalars = [argument.arg for argument in function.args.args if "_ptr" not in argument.arg and not argument.annotation]
        self.kernels[name] = [(SIZES[types[pointer]], uses[pointer]) for pointer in pointers], scalars

    def size(self, node):
        """Elements in memory of an expression; None where it is no buffer."""
        if isinstance(node, ast.Name):
            return self.elements_of.get(node.id)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "reinterpret_tensor":
            return self.elements(node.args[1], node.args[2])
        return None

    @staticmethod
    def elements(sizes, strides):
        count = 1
        for size, stride in zip(numbers(sizes), numbers(strides)):
            count *= size if stride else 1
        return count

    def visit_Assign(self, node):
        self.generic_visit(node)
        name, value = ast.unparse(node.targets[0]), node.value
        function = ast.unparse(value.func) if isinstance(value, ast.Call) else ""
        operator = re.sub(r"^torch\.ops\.aten\.(\w+)\..*", r"\1", function)
        if operator in RESULTS:
            self.results[name] = [self.size(value.args[i]) for i in RESULTS[operator]]
        elif isinstance(value, ast.Subscript) and ast.unparse(value.value) in self.results:
            results, which = self.results[ast.unparse(value.value)], ast.literal_eval(value.slice)
            if which < len(results):
                self.elements_of[name] = results[which]
        elif function.startswith(("empty_strided", "rand_strided")):
            self.elements_of[name] = self.elements(*value.args[:2])
        elif self.size(value) is not None:
            self.elements_of[name] = self.size(value)

    def visit_Call(self, node):
        self.generic_visit(node)
        if ast.unparse(node.func) in ("assert_tensor_metadata", "assert_size_stride"):  # of what an operator gave back
            self.elements_of[ast.unparse(node.args[0])] = self.elements(*node.args[1:3])
        if not isinstance(node.func, ast.Attribute) or node.func.attr != "run":
            return
        kernel = ast.unparse(node.func.value)
        pointers, scalars = self.kernels[kernel]
        # A place loads or stores once for each element of the kernel's space: a part of a tensor, or rows of a table.
        space = 1
        for name, argument in zip(scalars, node.args[len(pointers):]):
            space *= numbers(argument) if name.endswith("numel") else 1
        read, written = collections.Counter(), collections.Counter()
        for (size, uses), argument in zip(pointers, node.args):
            for verb, amounts in (("load", read), ("store", written)):
                amount = min(self.size(argument), uses[verb] * space) * size
                amounts[ast.unparse(argument)] = max(amounts[ast.unparse(argument)], amount)
        self.calls[kernel] += 1
        self.by_kernel[kernel] += sum(read.values()) + sum(written.values())
        norms = {norm for norm in NORMS if norm in kernel}
        read = +read
        for buffer, count in read.items():
            self.read_again[kernel] += count if norms & self.reductions[buffer] else 0
        if kernel.startswith(("triton_red", "triton_per")):
            for buffer in read:
                self.reductions[buffer] |= norms


def modules_of(cache):
    """The sources of the generated modules in a cache."""
    return [text for path in sorted(pathlib.Path(cache).rglob("*.py")) if "AsyncCompile()" in (text := path.read_text())]
