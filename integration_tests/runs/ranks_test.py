#!/usr/bin/env python3
"""Jobs of several ranks under torchrun, with gloo: who measures, where the traces go, and what a restart adds.

    ranks_test.py [unittest arguments]     see programs.py for the environment
"""
import json
import unittest

import programs

TRAIN = """
import torch
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
print(f"rank {rank}: {float(sum(p.sum() for p in model.parameters())):.6f}")
dist.destroy_process_group()
"""

# There is no process group: after a restart gloo's connections sometimes find the addresses of the former ranks, and
# the job ends, with rfinject or without it. Rank 1 fails once, in the midst of the training; rank 0 sees that and
# ends.
RESTARTED = """
import os, signal, sys, time, torch
rank, first = os.environ["RANK"], os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
ready, failed = sys.argv[1:]
if first:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # torchrun is not to end rank 0 before its trace is whole
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    model(torch.ones(4, 8)).sum().backward()
    optimizer.step()
    if first and step == 1 and rank == "0":
        open(ready, "w").close()
        while not os.path.exists(failed):
            time.sleep(0.01)
        sys.exit(3)
    if first and step == 1 and rank == "1":
        while not os.path.exists(ready):
            time.sleep(0.01)
        open(failed, "w").close()
        os._exit(3)
"""


class Ranks(programs.TestCase):
    def runs(self):
        return json.loads(self.cli("runs", "--format", "json").stdout)["runs"]

    def test_all_ranks_are_one_run_and_only_those_measure_that_are_asked_for(self):
        said = {}
        for ranks, count in (("all", 3), ("0,2", 2)):
            with self.subTest(ranks=ranks):
                text = self.run_job(3, TRAIN, "--ranks", ranks, "-o", f"out-{count}/").stdout
                said[ranks] = sorted(line for line in text.splitlines() if "rank" in line)
                self.assertEqual(len(list((self.folder / f"out-{count}").glob("*.rfx"))), count)
                report = self.report(f"out-{count}")
                self.assertEqual((report["process_count"], report["steps"]), (count, 3 * count))
        # The program says the same, whichever rank measures.
        self.assertEqual(len(said["all"]), 3)
        self.assertEqual(said["0,2"], said["all"])

    def test_a_restart_is_of_the_same_run(self):
        self.run_job(2, RESTARTED, launcher=["--max_restarts", "1"],
                     arguments=[self.folder / "ready", self.folder / "failed"])
        self.assertTrue((self.folder / "failed").exists())
        self.assertEqual(len(self.runs()), 1)
        traces = list((self.folder / "rfinject-out/latest/").glob("*.rfx"))
        self.assertEqual(len(traces), 4)
        report = self.report()
        self.assertEqual(report["process_count"], 4)
        self.assertEqual(report["steps"], 2 * 2 + 2 * 3)


if __name__ == "__main__":
    unittest.main()
