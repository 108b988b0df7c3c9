"""What the torture scripts share: where the build is, a tiny training program, and running it plain and injected."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("RFINJECT_BUILD", ROOT / "build" / "release"))
LIBRARY = str(BUILD / "lib" / "librfinject.so")
COMMAND = str(BUILD / "bin" / "rfinject")
PYTHON = os.environ.get("RFINJECT_PYTHON", "/usr/bin/python3")
FAKE_TORCH = str(ROOT / "integration_tests" / "python" / "fake_torch")
os.environ["RFINJECT_LIBRARY"] = LIBRARY  # tells rfx_trace where protoc's module is
sys.path.insert(0, str(ROOT / "integration_tests"))
import rfx_trace  # noqa: E402  (the path comes first)

PREAMBLE = """
import os, sys, time
import torch
from torch import nn
torch.set_num_threads(1)
torch.manual_seed(1)
def make():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    return model, torch.optim.SGD(model.parameters(), lr=0.1), torch.ones(3, 4)
def step(model, optimizer, x):
    optimizer.zero_grad()
    loss = model(x).sum()
    loss.backward()
    optimizer.step()
    return loss.item()
"""


def environment(folder=None, **more):
    """The environment of a program: under the library if `folder` is given, where its traces then go."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("RFINJECT_", "LD_PRELOAD", "CUDA_INJECTION"))}
    if folder is not None:
        env.update(LD_PRELOAD=LIBRARY, RFINJECT_OUTPUT=f"{folder}/", RFINJECT_ESTIMATE="A100-SXM4-40GB",
                   RFINJECT_ESTIMATE_ON="cpu")
    env.update({k: str(v) for k, v in more.items()})
    return env


def scratch():
    """A folder that goes away with the process."""
    import atexit
    folder = pathlib.Path(tempfile.mkdtemp(prefix="rfinject-torture-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def compile_c(source, output, *options):
    """A shared library or program from a C file beside the scripts."""
    subprocess.run(["cc", "-O1", "-g", "-Wall", "-Werror", *options, "-o", str(output),
                    str(pathlib.Path(__file__).parent / source), "-ldl", "-pthread"], check=True)
    return str(output)


def traces(folder):
    """Every trace below, read as far as it is good; raises when one is damaged otherwise than by being cut short."""
    found = []
    for path in rfx_trace.trace_files(str(folder)):
        found.append(rfx_trace.read_trace(path, strict=False))
    return found


def parse(description, flags=None, **numbers):
    """--short, --seed, one option a number: its value, and (value, short value); `flags`: {name: help}."""
    import argparse
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="few cases, with a fixed seed")
    parser.add_argument("--seed", type=int, default=1)
    for name, (value, short) in numbers.items():
        parser.add_argument("--" + name.replace("_", "-"), type=int, help=f"default {value}, short {short}")
    for name, text in (flags or {}).items():
        parser.add_argument("--" + name, action="store_true", help=text)
    options = parser.parse_args()
    for name, (value, short) in numbers.items():
        if getattr(options, name) is None:
            setattr(options, name, short if options.short else value)
    return options
