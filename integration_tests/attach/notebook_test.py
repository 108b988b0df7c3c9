"""`rfinject attach` on the kernel of a Jupyter notebook, with the ipykernel of scripts/tools/jupyter.txt.

More, by hand: RFINJECT_ATTACH_CYCLES=50 and RFINJECT_ATTACH_SEED=2.
"""

import json
import os
import pathlib
import random
import subprocess
import sys
import time
import unittest

from processes import GPU, HERE, PYTHON, TIMEOUT_S, TestCase

CYCLES = int(os.environ.get("RFINJECT_ATTACH_CYCLES", 2))
SEED = int(os.environ.get("RFINJECT_ATTACH_SEED", 1))
SETUP = """
import torch
from torch import nn

def train(steps):
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8))
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(steps):
        net(torch.randn(16, 32)).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return sum(parameter.double().abs().sum().item() for parameter in net.parameters())

import os
os.getpid()
"""


class Kernel(TestCase):

    def setUp(self):
        super().setUp()
        from jupyter_client.manager import KernelManager
        self.environment.update(PYTHONPATH=os.pathsep.join(sys.path[:1]), HOME=str(self.folder), JUPYTER_PLATFORM_DIRS="1",
                                OMP_NUM_THREADS="1")  # several wait for each other by spinning
        os.environ.update(HOME=str(self.folder), JUPYTER_PLATFORM_DIRS="1")
        self.kernel = KernelManager(kernel_name="python3")
        self.kernel.start_kernel(env=self.environment, cwd=str(self.folder), stderr=subprocess.DEVNULL)
        self.addCleanup(self.kernel.shutdown_kernel, now=True)
        self.client = self.kernel.client()
        self.client.start_channels()
        self.addCleanup(self.client.stop_channels)
        self.client.wait_for_ready(timeout=TIMEOUT_S)
        self.pid = int(self.run_cell(SETUP))

    def run_cell(self, cell):
        """What its last line is."""
        return self.result(self.client.execute(cell))

    def result(self, request):
        shown = None
        while True:
            message = self.client.get_iopub_msg(timeout=TIMEOUT_S)
            if message["parent_header"].get("msg_id") != request:
                continue
            content = message["content"]
            self.assertNotIn(message["msg_type"], ("error", "stream"), content)
            if message["msg_type"] == "execute_result":
                shown = content["data"]["text/plain"]
            if message["msg_type"] == "status" and content["execution_state"] == "idle":
                return shown

    def steps(self, trace):
        report = json.loads(self.cli("report", trace, "--format", "json").stdout)
        self.assertLessEqual({"0", "1", "2"}, {str(row["layer"]).rpartition(".")[2] for row in report["layer_phases"]})
        return report["steps"]

    def test_while_a_cell_runs(self):
        alone = self.run_cell("train(2000)")
        chance = random.Random(SEED)
        for cycle in range(CYCLES):
            request = self.client.execute("train(2000)")
            time.sleep(chance.random() * 0.1)
            self.cli("attach", "--estimate", GPU, "--steps", 20, "--report", "-o", f"{cycle}.rfx", self.pid)
            self.assertEqual(self.result(request), alone)
            self.assertEqual(self.steps(f"{cycle}.rfx"), 20)

    def test_between_cells(self):
        """The kernel waits for a cell, and is attached to when there is one."""
        said = self.cli("attach", "--estimate", GPU, "--wait", 1, self.pid, expect=1).stderr
        self.assertIn("was left as it was: its main thread did not come back to Python", said)
        command = subprocess.Popen([os.environ["RFINJECT"], "attach", "--estimate", GPU, "-q", "--wait", str(TIMEOUT_S), "-o",
                                    "one.rfx", str(self.pid)], cwd=self.folder, env=self.environment, stderr=subprocess.PIPE)
        self.addCleanup(command.communicate)
        self.addCleanup(command.kill)
        while command.poll() is None:
            self.run_cell("1")
        self.assertEqual(command.returncode, 0, command.stderr.read())
        self.run_cell("train(7)")
        self.run_cell("train(7)")
        ended = subprocess.Popen([os.environ["RFINJECT"], "detach", "--wait", str(TIMEOUT_S), str(self.pid)], env=self.environment)
        self.addCleanup(ended.wait)
        while ended.poll() is None:
            self.run_cell("1")
        self.assertEqual(ended.returncode, 0)
        # A step that begins where a cell does and ends with the optimizer.
        self.assertEqual(self.steps("one.rfx"), 14 - 1)


if __name__ == "__main__":
    found = subprocess.run([HERE.parents[1] / "scripts/tools_venv", "jupyter"], capture_output=True, text=True)
    packages = pathlib.Path(found.stdout.strip()).parents[1] / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    if found.returncode != 0 or not packages.exists():
        print("note: skipped: scripts/tools/jupyter.txt cannot be had here, or is for another Python than", PYTHON)
        sys.exit(77)
    sys.path.insert(0, str(packages))
    unittest.main()
