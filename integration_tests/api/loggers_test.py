#!/usr/bin/env python3
"""`Profile.log_to` with torch's SummaryWriter and with wandb offline, read back by TensorBoard and by wandb.

    loggers_test.py --rfinject BIN --library SO --python PYTHON [unittest arguments]
PYTHON has the torch whose SummaryWriter writes; TensorBoard and wandb are those of scripts/tools/loggers.txt.
"""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import support
from support import GOLDEN, OPTIONS, ROOT

STEP = 7
WRITE_EVENTS = """
import json, sys
import numpy  # torch's own, before the one that lies beside TensorBoard
sys.path.insert(0, sys.argv[1])
from torch.utils.tensorboard import SummaryWriter
sys.path.append(sys.argv[2])
import rfinject
with SummaryWriter(sys.argv[3]) as writer:
    print(json.dumps(rfinject.load(sys.argv[4]).log_to(writer, step=int(sys.argv[5]))))
"""
READ_EVENTS = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
events.Reload()
print(json.dumps({tag: [[event.step, event.value] for event in events.Scalars(tag)] for tag in events.Tags()["scalars"]}))
"""
LOG_TO_WANDB = """
import json, sys
sys.path.append(sys.argv[1])
import rfinject, wandb
settings = wandb.Settings(mode="offline", console="off", silent=True, x_disable_stats=True, x_disable_meta=True,
                          disable_git=True, disable_code=True)
with wandb.init(project="rfinject", dir=sys.argv[2], settings=settings) as run:
    print(json.dumps(rfinject.load(sys.argv[3]).log_to(run, step=int(sys.argv[4]))))
"""
READ_WANDB = """
import json, sys
from wandb.proto import wandb_internal_pb2
from wandb.sdk.internal.datastore import DataStore
store = DataStore()
store.open_for_scan(sys.argv[1])
logged = []
while (data := store.scan_data()) is not None:
    record = wandb_internal_pb2.Record.FromString(data)
    if record.HasField("history"):
        logged.append({"/".join(item.nested_key) or item.key: json.loads(item.value_json) for item in record.history.item})
print(json.dumps(logged))
"""


class Loggers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        found = subprocess.run([ROOT / "scripts/tools_venv", "loggers"], capture_output=True, text=True)
        if found.returncode != 0:
            raise unittest.SkipTest("note: TensorBoard and wandb are not to be had here")
        cls.tools = found.stdout.strip()
        folder = tempfile.TemporaryDirectory(prefix="rfinject-loggers-test-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)

    def python(self, interpreter, script, *words):
        # wandb keeps files in the home folder, and would say on the network what went wrong.
        environment = {**os.environ, "HOME": str(self.folder), "WANDB_ERROR_REPORTING": "false"}
        result = subprocess.run([interpreter, "-B", "-c", script, *map(str, words)], capture_output=True, text=True,
                                timeout=240, env=environment, cwd=self.folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout.splitlines()[-1])

    def test_tensorboard(self):
        packages = self.python(self.tools, "import json, tensorboard; print(json.dumps(tensorboard.__path__[0]))")
        written = self.python(OPTIONS.python, WRITE_EVENTS, os.path.dirname(packages), ROOT / "python", self.folder / "events",
                              GOLDEN / "est-resnet18.rfx", STEP)
        read = self.python(self.tools, READ_EVENTS, self.folder / "events")
        self.assertEqual(set(read), set(written))
        self.assertIn("rfinject/forward/ResNet/flop", read)
        for tag, value in written.items():
            [[step, found]] = read[tag]
            self.assertEqual(step, STEP)
            self.assertAlmostEqual(found, value, delta=1e-6 * abs(value), msg=tag)  # events hold floats

    def test_wandb(self):
        written = self.python(self.tools, LOG_TO_WANDB, ROOT / "python", self.folder, GOLDEN / "est-resnet18.rfx", STEP)
        runs = list(self.folder.glob("wandb/offline-run-*/run-*.wandb"))
        self.assertEqual(len(runs), 1)
        [logged] = self.python(self.tools, READ_WANDB, runs[0])
        self.assertEqual(logged["_step"], STEP)
        self.assertEqual({tag: value for tag, value in logged.items() if not tag.startswith("_")}, written)


if __name__ == "__main__":
    support.main()
