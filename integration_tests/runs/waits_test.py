#!/usr/bin/env python3
"""What steps wait for: a slow data loader is seen, of which rank, and nothing is counted that is no wait of a step.

    waits_test.py [unittest arguments]     see programs.py for the environment

Loaders sleep, so that what they take is a lower bound whatever else the machine does.
"""
import json
import shutil
import unittest

import programs

BEGIN = """
import sys, threading, time, torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __init__(self, seconds, samples):
        self.seconds, self.samples = seconds, samples
    def __len__(self):
        return self.samples
    def __getitem__(self, index):
        time.sleep(self.seconds)
        return torch.ones(16)

net = nn.Linear(16, 4)

def train(batches, net=net):
    sgd = torch.optim.SGD(net.parameters(), lr=0.01)
    for batch in batches:
        sgd.zero_grad()
        net(batch).sum().backward()
        sgd.step()
"""
# A batch has four samples, which take 40 ms.
SLOW = BEGIN + "train(DataLoader(Slow(0.01, 24), 4))\n"
NONE = BEGIN + "train([torch.ones(4, 16)] * 6)\n"
VALIDATING = BEGIN + """
for epoch in range(3):
    net.train()
    train(DataLoader(Slow(0, 8), 4))
    net.eval()
    with torch.no_grad():
        for batch in DataLoader(Slow(0.05, 8), 4):
            net(batch)
"""
AHEAD = BEGIN + """
import queue
ready = queue.Queue(2)
def load():
    for batch in DataLoader(Slow(0.01, 24), 4):
        ready.put(batch)
thread = threading.Thread(target=load)
thread.start()
train(ready.get() for _ in range(6))
thread.join()  # a thread that computes while the interpreter ends aborts the process
"""
# Rank 1's batches take 60 ms, the others' next to nothing. "ddp": the ranks wait for each other in every step.
RANKS = BEGIN + """
import os
torch.distributed.init_process_group("gloo")
slow = torch.distributed.get_rank() == 1
if sys.argv[1] == "ddp":
    net = nn.parallel.DistributedDataParallel(net)
train(DataLoader(Slow(0.015 if slow else 0, 40), 4), net)
"""


class Waits(programs.ForkedTestCase):
    def waits(self, *words):
        (run,) = json.loads(self.cli("report", "--by", "wait", "--format", "json", *words).stdout)["runs"]
        return run

    def run_ranks(self, source, argument, ranks):
        shutil.rmtree(self.folder / "rfinject-out", ignore_errors=True)
        self.run_ranks_in_children(ranks, source, argument)

    def test_a_slow_loader_is_what_the_steps_wait_for(self):
        self.profile(SLOW)
        (row,) = self.waits()["rows"]
        self.assertEqual(row["steps"], 6)
        self.assertGreaterEqual(row["data_wait_p50_ns"], 39e6)
        # The first batch is waited for before anything of the first step runs, and is that step's all the same.
        self.assertGreaterEqual(row["data_wait_mean_ns"], 39e6)
        self.assertLessEqual(row["data_wait_mean_ns"], row["wall_time_mean_ns"])
        self.assertIsNone(row["gpu_busy_mean_ns"])
        self.assertIn("ran on the CPU", " ".join(self.cli("report", "--by", "wait").stdout.split()))

    def test_no_loader_no_wait(self):
        self.profile(NONE)
        (row,) = self.waits()["rows"]
        self.assertEqual((row["data_wait_mean_ns"], row["data_wait_p95_ns"]), (0, 0))
        self.assertGreater(row["wall_time_p50_ns"], 0)

    def test_what_validation_and_other_threads_wait_for_is_no_steps(self):
        for program in (VALIDATING, AHEAD):
            with self.subTest(program[len(BEGIN):]):
                self.profile(program)
                rows = [run["rows"][0] for run in json.loads(
                    self.cli("report", "--by", "wait", "--format", "json").stdout)["runs"]]
                (row,) = (row for row in rows if row["steps"] > 0)
                self.assertEqual(row["steps"], 6)
                self.assertLess(row["data_wait_mean_ns"], 20e6)

    def test_the_rank_that_waits_for_data_is_named(self):
        for how in ("ddp", "alone"):
            with self.subTest(how):
                self.run_ranks(RANKS, how, 3)
                run = self.waits()
                everybody, *ranks = run["rows"]
                self.assertEqual([row["rank"] for row in ranks], ["0", "1", "2"])
                self.assertEqual([row["steps"] for row in ranks], [10, 10, 10])
                self.assertEqual(everybody["steps"], 30)
                self.assertEqual(run["longest_data_wait_rank"], "1")
                self.assertGreaterEqual(ranks[1]["data_wait_p50_ns"], 55e6)
                text = " ".join(self.cli("report", "--by", "rank").stdout.split())
                self.assertIn("Rank 1 waits longest for data", text)
                if how == "alone":
                    self.assertEqual(run["slowest_rank"], "1")
                    self.assertIn("Rank 1 is the slowest", text)
                # It is the same after merging.
                self.cli("merge", "rfinject-out/", "-o", f"{how}.rfx")
                self.assertEqual(self.waits(f"{how}.rfx"), run)


if __name__ == "__main__":
    unittest.main()
