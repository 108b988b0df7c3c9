#!/usr/bin/env python3
"""`rfinject top` beside a job that runs: two ranks, one of which is killed, while the other goes on and ends.

    top_test.py [unittest arguments]     see programs.py for the environment
"""
import os
import re
import signal
import subprocess
import time
import unittest

import programs

TRAIN = """
import os, torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
while not os.path.exists("enough"):
    optimizer.zero_grad()
    model(torch.ones(32, 64)).sum().backward()
    optimizer.step()
print(float(sum(p.sum() for p in model.parameters())) is not None)
"""
PATIENCE_S = 200


class Top(programs.TestCase):
    def start(self, rank):
        environment = {**self.environment, "RANK": str(rank), "WORLD_SIZE": "2", "RFINJECT_JOB": "one-job"}
        process = subprocess.Popen([programs.RFINJECT, "-q", "--estimate", programs.GPU, "-o", "out/", programs.PYTHON,
                                    self.write("train.py", TRAIN)], cwd=self.folder, env=environment,
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def await_top(self, *patterns):
        """What is printed once all patterns are in it."""
        end = time.monotonic() + PATIENCE_S
        while True:
            # There is no trace in the first moments.
            text = self.cli("top", "--once", "out", expect=None).stdout
            if all(re.search(pattern, text, re.MULTILINE) for pattern in patterns):
                return text
            self.assertLess(time.monotonic(), end, text)
            time.sleep(0.1)

    def steps(self, text, rank):
        found = re.search(rf"^ +{rank} +\S+ +(?:-|\d+ s|\d+ min \d+ s) +([\d,]+) ", text, re.MULTILINE)
        return int(found[1].replace(",", "")) if found else 0

    def test_a_rank_is_killed_and_the_other_ends(self):
        os.makedirs(self.folder / "out")
        ranks = [self.start(rank) for rank in range(2)]
        text = self.await_top(r"train\.py:\s+running\s+for ", r"^Ranks: 2, 2 writes$", r"^ +0 +writes ", r"^ +1 +writes ")
        # The run goes on while it is read.
        before = self.steps(text, 0)
        end = time.monotonic() + PATIENCE_S
        while self.steps(text, 0) <= before:
            self.assertLess(time.monotonic(), end, text)
            text = self.await_top("^Ranks: 2")
        self.assertIn("ESTIMATED on " + programs.GPU, text)
        self.assertRegex(text, r"(?m)^~ \(optimizer, no layer\) ")

        ranks[1].send_signal(signal.SIGKILL)
        ranks[1].wait()
        trace, = (path for path in (self.folder / "out").glob("*.rfx") if f"-{ranks[1].pid}" in path.name
                  or f".{ranks[1].pid}" in path.name)
        os.utime(trace, (time.time() - 60,) * 2)  # as a minute later
        self.await_top(r"^Rank 1 has written nothing for 1 min \d+ s", r"^Ranks: 2, 1 writes, 1 quiet$")

        (self.folder / "enough").touch()
        self.assertEqual(ranks[0].communicate(timeout=PATIENCE_S)[0], "True\n")
        self.assertEqual(ranks[0].returncode, 0)
        self.await_top(r"^Ranks: 2, 1 ended, 1 quiet$", r"train\.py:\s+nothing\s+is\s+written\s+any\s+more$")


if __name__ == "__main__":
    unittest.main()
