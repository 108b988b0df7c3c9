"""Counts what the kernels of the modules that Inductor generated read and write, from their syntax trees."""
import ast
import collections
import pathlib

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
