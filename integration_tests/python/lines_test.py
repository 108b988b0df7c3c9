"""Tests which line of the program a launch comes from: in the forward the line that calls, in the backward the line
that made the node."""

import os
import re
import shutil
import sys
import tempfile
import unittest

import support

MODEL = """
    import torch
    from torch import nn
    from torch.utils.checkpoint import checkpoint


    class Attention(nn.Module):
        def forward(self, x):
            scores = x @ x.transpose(1, 2)                      # scores
            weights = scores.softmax(-1)                        # weights
            return weights @ x                                  # mix


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(8, 8)
            self.attention = Attention()
            self.tail = nn.Sequential(nn.Linear(8, 8), nn.Tanh())
            self.again = nn.Sequential(nn.Linear(8, 8), nn.Sigmoid())
            self.bias = nn.Parameter(torch.zeros(8))

        def forward(self, x):
            x = self.first(x)                                   # first
            x = self.attention(x)                               # attention
            x = x * self.bias.expand(2, 4, 8)                   # expand
            x = self.tail(
                x)                                              # tail ends
            return checkpoint(self.again, x{reentrant})         # again
"""

PROGRAM = """
    import torch
    import torch.nn.functional as F
    from model import Net

    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        y = net(torch.ones(2, 4, 8))
        loss = F.mse_loss(y, torch.zeros(2, 4, 8))              # loss
        loss.backward()                                         # backward
        optimizer.step()                                        # step
        optimizer.zero_grad()
"""


def line_of(path, marker):
    with open(path) as file:
        for number, text in enumerate(file, 1):
            if re.search(r"#\s" + marker + r"$", text.rstrip()):
                return "%s:%d" % (os.path.basename(path), number)
    raise AssertionError("no line with " + marker)


class Lines(support.TestCase):
    def write_model(self, name="model.py"):
        import_line = "import torch, sys; sys.stdout.write(torch.__version__)"
        version = self.run_command([support.PYTHON, "-c", import_line], self.environment()).stdout
        reentrant = ", use_reentrant=True" if not version.startswith("1.") else ""
        return self.write(name, MODEL.replace("{reentrant}", reentrant))

    def lines(self, rows, phase, **wanted):
        found = {row["line"].split(" ")[0] for row in rows
                 if row["phase"] == phase and all(row[key] == value for key, value in wanted.items())}
        self.assertTrue(found, (phase, wanted))
        return found

    def test_forward_and_backward(self):
        model = self.write_model()
        program = self.write("train.py", PROGRAM)
        result = self.inject([support.PYTHON, program])
        self.assertEqual(result.code, 0, result.stderr)
        rows = result.trace.rows()
        at = lambda marker: {line_of(model, marker)}  # noqa: E731

        # A layer of torch's is called on a line of the program.
        self.assertEqual(self.lines(rows, "forward", layer="first"), at("first"))
        self.assertEqual(self.lines(rows, "backward", layer="first"), at("first"))
        # Each operator of a layer on its own; its node's work, too. The two products differ in their shapes.
        in_forward = [row for row in rows if row["layer"] == "attention" and row["phase"] == "forward"]
        products = [row for row in in_forward if row["op"] == "aten::bmm"]
        self.assertEqual([row["line"].split(" ")[0] for row in sorted(products, key=lambda row: row["signature"])],
                         [line_of(model, "mix"), line_of(model, "scores")], products)
        self.assertEqual(self.lines(rows, "forward", layer="attention", op="aten::_softmax"), at("weights"))
        self.assertEqual(self.lines(rows, "backward", layer="attention", node="SoftmaxBackward0"), at("weights"))
        self.assertEqual(self.lines(rows, "backward", layer="attention", node="BmmBackward0"),
                         at("scores") | at("mix"))
        # An operator that makes a view launches nothing: its node has the line of the nearest launch in its layer.
        self.assertEqual(self.lines(rows, "backward", layer="", node="ExpandBackward0"), at("expand"))
        # Which line a call of several lines has differs by Python's version.
        tail = int(line_of(model, "tail ends").split(":")[1])
        for phase in ("forward", "backward"):
            self.assertLessEqual(self.lines(rows, phase, layer="tail.0"),
                                 {"model.py:%d" % (tail - 1), "model.py:%d" % tail})
        # A checkpointed part is run again inside the backward, by torch, below the line that says backward(): the line
        # is the forward's all the same.
        for phase in ("forward", "recompute", "backward"):
            self.assertEqual(self.lines(rows, phase, layer="again.0"), at("again"))
            self.assertEqual(self.lines(rows, phase, layer="again.1"), at("again"))

        self.assertEqual(self.lines(rows, "optimizer", op="aten::add_"), {line_of(program, "step")})
        self.assertEqual(self.lines(rows, "other", op="aten::mse_loss"), {line_of(program, "loss")})
        self.assertEqual(self.lines(rows, "backward", node="MseLossBackward0"), {line_of(program, "loss")})
        # Names of functions are qualified where the interpreter knows.
        self.assertEqual([row for row in rows if not row["line"]], [])
        name = "Attention.forward" if sys.version_info >= (3, 11) else "forward"
        self.assertIn(" " + name, next(row["line"] for row in rows if row["layer"] == "attention"))
        # The trace has nothing of where the program lies, and nothing of its text.
        with open(result.files[0], "rb") as file:
            content = file.read()
        self.assertNotIn(b"# mix", content)
        for line in result.trace.lines.values():
            self.assertFalse(result.trace.names[line["file"]].startswith("/"))

    def test_installed_code(self):
        # The innermost line of the program itself, though what it calls is Python code, too.
        self.write_model()
        os.makedirs(self.path("site-packages/zoo/deep"))
        self.write("site-packages/zoo/__init__.py", "")
        self.write("site-packages/zoo/deep/model.py", MODEL.replace("{reentrant}", ""))
        main = self.write("main.py", """
            import sys
            sys.path.insert(0, "site-packages")
            import torch
            from zoo.deep.model import Attention
            from lib.helper import call
            net = torch.nn.Sequential(Attention(), torch.nn.Linear(8, 8))
            for _ in range(2):
                net(torch.ones(2, 4, 8))                        # straight
                call(net)
            """)
        elsewhere = tempfile.mkdtemp(prefix="rfinject-test-")
        self.addCleanup(shutil.rmtree, elsewhere, ignore_errors=True)
        os.makedirs(os.path.join(elsewhere, "lib"))
        helper = self.write(os.path.join(elsewhere, "lib", "helper.py"), """
            def call(net):
                import torch
                net(torch.ones(3, 4, 8))                        # helped
            """)
        result = self.inject([support.PYTHON, main], PYTHONPATH=elsewhere)
        self.assertEqual(result.code, 0, result.stderr)
        helped = line_of(helper, "helped")
        self.assertEqual({row["line"].split(" ")[0] for row in result.trace.rows() if row["layer"] == "0"},
                         {line_of(main, "straight"), "lib/" + helped})

    def test_a_program_that_is_a_package(self):
        # Nothing on the stack but installed code: its innermost line.
        os.makedirs(self.path("site-packages/app"))
        self.write("site-packages/app/__init__.py", "")
        path = self.write("site-packages/app/__main__.py", """
            import torch
            net = torch.nn.Linear(8, 8)
            for _ in range(2):
                net(torch.ones(2, 8))                           # call
            """)
        result = self.inject([support.PYTHON, "-m", "app"], PYTHONPATH=self.path("site-packages"))
        self.assertEqual(result.code, 0, result.stderr)
        self.assertEqual({row["line"] for row in result.trace.rows() if row["model"] == "Linear"},
                         {line_of(path, "call") + " <module>"})

    def test_threads_generators_and_other_letters(self):
        # Each thread has a stack of its own; a generator's frame lies elsewhere; names need not be ASCII.
        path = self.write("modèle_模型.py", """
            import threading
            import torch
            one = torch.nn.Linear(8, 8)

            def batches():
                for _ in range(3):
                    yield one(torch.ones(2, 8))                 # generator

            def größe():
                for _ in range(3):
                    one(torch.ones(4, 8))                       # thread

            for _ in batches():
                pass
            thread = threading.Thread(target=größe)
            thread.start()
            thread.join()
            """)
        result = self.inject([support.PYTHON, path])
        self.assertEqual(result.code, 0, result.stderr)
        for shape, marker, function in (("[2,8]", "generator", "batches"), ("[4,8]", "thread", "größe")):
            rows = [row for row in result.trace.rows() if row["model"] == "Linear" and shape in row["signature"]]
            self.assertEqual({row["line"] for row in rows}, {line_of(path, marker) + " " + function})

    def test_a_program_on_the_command_line(self):
        code = "import torch\nnet = torch.nn.Linear(8, 8)\nfor _ in range(2):\n  net(torch.ones(2, 8))\n"
        result = self.inject([support.PYTHON, "-c", code])
        self.assertEqual(result.code, 0, result.stderr)
        self.assertEqual({row["line"] for row in result.trace.rows() if row["model"] == "Linear"},
                         {"<string>:4 <module>"})

    def test_children_of_fork(self):
        # A child does not ask again for the keys that its parent has seen.
        path = self.write("forks.py", """
            import os
            import torch
            net = torch.nn.Linear(8, 8)
            def train():
                for _ in range(3):
                    net(torch.ones(2, 8))                       # call
            train()
            if os.fork() == 0:
                train()
                os._exit(0)
            os.wait()
            """)
        result = self.inject([support.PYTHON, path])
        self.assertEqual(len(result.traces), 2, result.stderr)
        for trace in result.traces:
            self.assertEqual({row["line"] for row in trace.rows() if row["model"] == "Linear"},
                             {line_of(path, "call") + " train"})


if __name__ == "__main__":
    unittest.main()
