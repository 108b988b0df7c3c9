#!/usr/bin/env python3
"""Jobs of several ranks under torchrun, with gloo: who measures, where the traces go, and what a restart adds.

    ranks_test.py [unittest arguments]     see programs.py for the environment
"""
import json
import socket
import unittest

import programs

TRAIN = """
import os, sys, torch
import torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    model(torch.ones(4, 8)).sum().backward()
    optimizer.step()
    # Once, in the midst of the training: torchrun ends the other ranks and starts all of them again.
    if len(sys.argv) > 1 and step == 1:
        dist.barrier()
        if rank == 1 and not os.path.exists(sys.argv[1]):
            open(sys.argv[1], "w").close()
            os._exit(3)
print(f"rank {rank}: {float(sum(p.sum() for p in model.parameters())):.6f}")
dist.destroy_process_group()
"""


def unused_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Ranks(programs.TestCase):
    def torchrun(self, processes, *options, launcher=(), arguments=()):
        # Redirected and teed, and with an address: integration_tests/examples says why.
        (self.folder / "log").mkdir(exist_ok=True)
        return self.cli("--estimate", programs.GPU, *options, programs.PYTHON, "-m", "torch.distributed.run",
                        "--master_addr", "127.0.0.1", "--master_port", unused_port(), "--nproc_per_node", processes,
                        "--log_dir", self.folder / "log", "-r", "1", "-t", "1", *launcher,
                        self.write("train.py", TRAIN), *arguments)

    def runs(self):
        return json.loads(self.cli("runs", "--format", "json").stdout)["runs"]

    def test_all_ranks_are_one_run_and_only_those_measure_that_are_asked_for(self):
        said = {}
        for ranks, count in (("all", 3), ("0,2", 2)):
            with self.subTest(ranks=ranks):
                text = self.torchrun(3, "--ranks", ranks, "-o", f"out-{count}/").stdout
                said[ranks] = sorted(line for line in text.splitlines() if "rank" in line)
                self.assertEqual(len(list((self.folder / f"out-{count}").glob("*.rfx"))), count)
                report = self.report(f"out-{count}")
                self.assertEqual((report["process_count"], report["steps"]), (count, 3 * count))
        # What the program says is the same, whoever measures.
        self.assertEqual(len(said["all"]), 3)
        self.assertEqual(said["0,2"], said["all"])

    def test_a_restart_is_of_the_same_run(self):
        self.torchrun(2, launcher=["--max_restarts", "1"], arguments=[self.folder / "failed"])
        self.assertTrue((self.folder / "failed").exists())
        self.assertEqual(len(self.runs()), 1)
        traces = list((self.folder / "rfinject-out/latest/").glob("*.rfx"))
        self.assertEqual(len(traces), 4)
        report = self.report()
        self.assertEqual(report["process_count"], 4)
        # Both ranks' three steps of the second attempt, and two or three of each in the first.
        self.assertGreaterEqual(report["steps"], 6 + 4)
        self.assertLessEqual(report["steps"], 6 + 6)


if __name__ == "__main__":
    unittest.main()
