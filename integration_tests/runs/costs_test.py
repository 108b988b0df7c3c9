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


class Costs(programs.TestCase):
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
        self.assertEqual([(row["launches"], row["dram_bytes"]) for row in counters], [(2, 2 * 16)])

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


if __name__ == "__main__":
    unittest.main()
