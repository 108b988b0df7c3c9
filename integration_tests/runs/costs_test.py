#!/usr/bin/env python3
"""What a program's operators cost on a GPU, where a CPU that runs them does other things than a GPU would.

    costs_test.py [unittest arguments]     see programs.py for the environment
"""
import unittest

import programs

BEGIN = """
import torch
from torch import nn
"""


class Costs(programs.ForkedTestCase):
    def test_collation_is_the_hosts(self):
        report = self.profile(BEGIN + """
from torch.utils.data import DataLoader, TensorDataset
net = nn.Linear(16, 4)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
data = TensorDataset(torch.ones(12, 16), torch.ones(12, 4))
for x, y in DataLoader(data, batch_size=4):
    sgd.zero_grad()
    (net(x) - y).square().sum().backward()
    sgd.step()
""")
        self.assertEqual(report["steps"], 3)
        self.assertNotIn("data", {phase["phase"] for phase in report["phases"]})

    def test_a_counter_is_eight_bytes(self):
        report = self.profile(BEGIN + """
net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    net(torch.ones(2, 3, 8, 8)).sum().backward()
    sgd.step()
""", "--by", "kernel")
        counters = [row for row in report["rows"] if row["op"] == "aten::add_" and "i64" in row["signature"]]
        self.assertEqual([(row["launches"], row["compulsory_bytes"]) for row in counters], [(2, 2 * 16)])

    def test_channels_last_is_where_one_operand_is(self):
        """As torch chooses for cuDNN: a converted model runs so on images that are not."""
        program = """
net = nn.Sequential(nn.Conv2d(4, 8, 3), nn.BatchNorm2d(8), nn.Conv2d(8, 8, 3)){}
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.ones(2, 4, 16, 16)
for _ in range(2):
    net(x).square().sum().backward()
    sgd.step()
"""
        for convert, usual in (("", True), (".to(memory_format=torch.channels_last)", False)):
            with self.subTest(convert=convert):
                report = self.profile(BEGIN + program.format(convert), "--by", "kernel")
                signatures = [row["signature"] for row in report["rows"]
                              if "convolution" in row["op"] or "batch_norm" in row["op"]]
                self.assertEqual(len(signatures), 6)
                for signature in signatures:
                    self.assertEqual(signature.startswith("f32["), usual, signature)
                    self.assertEqual(signature.startswith("f32:nhwc["), not usual, signature)

    def check_recurrent(self, module, gates, call="net(x)[0]"):
        """A recurrent layer costs what cuDNN runs, forward and backward, on whatever the CPU runs."""
        tokens, steps, layers, hidden = 5 * 4, 5, 2, 16
        report = self.profile(BEGIN + f"""
net = {module}
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.ones(5, 4, 8)
for _ in range(3):
    {call}.sum().backward()
    sgd.step()
""", "--by", "kernel")
        self.assertEqual(report["steps"], 3)
        rows = {phase: [row for row in report["rows"] if row["phase"] == phase and row["model"]]
                for phase in ("forward", "backward")}
        forward = [row for row in rows["forward"] if row["op"] in ("aten::lstm", "aten::gru", "aten::rnn_tanh")]
        matrices = gates * hidden * (8 + hidden) + gates * hidden * 2 * hidden
        flop = 2 * tokens * matrices + 3 * tokens * gates * hidden * layers
        self.assertEqual(sum(row["model_flop"] for row in forward), 3 * flop)
        self.assertEqual(sorted(row["launches"] for row in forward), [3, 3 * layers * steps, 3 * layers * steps])
        # Beside it, the states before the first token are made.
        self.assertLessEqual({row["op"] for row in rows["forward"]} - {row["op"] for row in forward},
                             {"aten::zeros", "aten::zero_"})
        backward = [row for row in rows["backward"] if row["op"].endswith("_backward")]
        self.assertEqual(sum(row["model_flop"] for row in backward), 3 * 2 * flop)
        self.assertEqual(sum(row["launches"] for row in backward), 3 * (1 + 2 * layers * steps))
        # Beside it, the gradients are added to those of the step before.
        self.assertEqual({row["op"] for row in rows["backward"]} - {row["op"] for row in backward} - {"aten::add_"}, set())
        self.assertEqual({row["model"] for row in backward}, {module.split("(")[0].split(".")[1]})
        self.assertEqual(report["alarms"], [])

    def test_lstm(self):
        self.check_recurrent("nn.LSTM(8, 16, 2)", 4)

    def test_gru(self):
        self.check_recurrent("nn.GRU(8, 16, 2)", 3)

    def test_rnn(self):
        self.check_recurrent("nn.RNN(8, 16, 2)", 1)

    def test_packed_sequences(self):
        self.check_recurrent("nn.LSTM(8, 16, 2)", 4, "net(nn.utils.rnn.pack_padded_sequence(x, [5] * 4))[0].data")

    def test_a_second_backward_counts_again(self):
        report = self.profile(BEGIN + """
net = nn.LSTM(8, 16)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
loss = net(torch.ones(5, 4, 8))[0].sum()
loss.backward(retain_graph=True)
loss.backward()
sgd.step()
""", "--by", "op")
        flop = {row["op"]: row["model_flop"] for row in report["rows"]}
        self.assertEqual(flop["aten::lstm_backward"], 2 * 2 * flop["aten::lstm"])

    def test_tangents_are_multiplied_by(self):
        report = self.profile(BEGIN + """
import torch.autograd.forward_ad as forward_ad
net = nn.Linear(13, 4, bias=False)
with torch.no_grad(), forward_ad.dual_level():
    tangents = {name: torch.ones_like(p) for name, p in net.named_parameters()}
    for name, p in list(net.named_parameters()):
        delattr(net, name)
        setattr(net, name, forward_ad.make_dual(p, tangents[name]))
    net.register_parameter("unused", nn.Parameter(torch.ones(1)))
    net(forward_ad.make_dual(torch.ones(64, 13), torch.ones(64, 13)))
""", "--by", "op")
        products = [row for row in report["rows"] if row["op"] in ("aten::mm", "aten::addmm", "aten::linear")]
        self.assertEqual(sum(row["model_flop"] for row in products), 3 * 2 * 64 * 13 * 4)

    def test_an_operand_given_twice_is_read_once(self):
        report = self.profile(BEGIN + """
class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.x = nn.Parameter(torch.ones(10, 10))
    def forward(self):
        x = self.x
        x * x, x @ x
        x[:5] * x[5:]  # two parts of one storage
net = Twice()
for _ in range(2):
    net()
""", "--by", "kernel")
        sizes = {row["signature"].split()[0]: row["compulsory_bytes"] / row["launches"] for row in report["rows"]
                 if row["op"] == "aten::mul"}
        self.assertEqual(sizes, {"f32[10,10]": 800, "f32[5,10]": 600})
        self.assertEqual([row["compulsory_bytes"] / row["launches"] for row in report["rows"] if row["op"] == "aten::mm"],
                         [800])


if __name__ == "__main__":
    unittest.main()
