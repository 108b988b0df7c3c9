#!/usr/bin/env python3
"""The pairs of programs that the rules of advice are held against, and the table of them in docs/reference/ADVICE.md.

    pair_runs.py [--gpu NAME]...            runs every pair and prints the table, in Markdown
    pair_runs.py [--gpu NAME]... --update   writes it, and the list of the rules without a pair, into that page, too

A pair is a program in pairs/ that is run twice: with the fault, and with the fault mended. The rule must hold for the first
and be silent for the second, and what it says it would win must be within 25 % of what the second takes less.

Environment: RFINJECT, the command; RFINJECT_PYTHON, an interpreter with torch.
"""
import argparse
import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent

RFINJECT = os.environ.get("RFINJECT") or str(HERE.parents[1] / "build/release/bin/rfinject")
PYTHON = os.environ.get("RFINJECT_PYTHON") or sys.executable
GPU = "A100-SXM4-40GB"
RULES = HERE.parents[1] / "cli/report/advice/rules.txt"
DOCUMENT = HERE.parents[1] / "docs/reference/ADVICE.md"
TOLERANCE = 0.25
TIMEOUT_S = 240

# For each program: its rule; whether the fault or its mending needs CUDA's own operators (as optimizers do from torch
# 2 on, which choose by device); and how many steps of the faulty program have as many samples as one step of the
# mended program.
PAIRS = {
    "optimizer-fused": ("optimizer-fused", True, 1),
    "optimizer-foreach": ("optimizer-foreach", "from torch 2", 1),
    "tf32": ("tf32", False, 1),
    "autocast": ("autocast", True, 1),
    "autocast-convolutions": ("autocast", True, 1),
    "fp64": ("fp64", False, 1),
    "fused-attention": ("fused-attention", True, 1),
    "fold-batch-norm": ("fold-batch-norm", False, 1),
    "channels-of-8": ("channels-of-8", True, 1),
    "recompute": ("recompute", False, 1),
    "set-to-none": ("set-to-none", False, 1),
    "torch-compile": ("torch-compile", True, 1),
    "larger-batch": ("larger-batch", False, 4),  # its batch is four times as large
    "slow-loader": ("slow-loader", True, 1),
    "host-waits": ("host-waits", True, 1),
}
# The programs whose mending wins no GPU time, but time by the clock of the virtual GPU.
BY_THE_CLOCK = {"slow-loader", "host-waits"}


@functools.cache
def torch_of_programs():
    """The version of the interpreter's torch, and the major version of its CUDA or None, found out without importing it."""
    code = "import importlib.metadata, cuda_torch; print(importlib.metadata.version('torch'), cuda_torch.cuda_major())"
    said = subprocess.run([PYTHON, "-c", code], cwd=HERE.parent, capture_output=True, text=True, timeout=TIMEOUT_S, check=True).stdout
    version, cuda = said.split()
    return version, None if cuda == "None" else int(cuda)


def can_run(program):
    needs_cuda = PAIRS[program][1]
    return has_virtual_gpu() or not (torch_of_programs()[0] >= "2" if needs_cuda == "from torch 2" else needs_cuda)


def has_virtual_gpu():
    """Whether the interpreter's torch is one for CUDA that this build has a virtual GPU for."""
    cuda = torch_of_programs()[1]
    return cuda is not None and (pathlib.Path(RFINJECT).parents[1] / f"lib/virtual_gpu/librfinject_cuda{cuda}.so").exists()


def compiling(folder):
    """Variables by which torch.compile compiles in the program's own process, and keeps what it made in `folder`."""
    return {"TORCHINDUCTOR_COMPILE_THREADS": "1", "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor"}


def run_all(programs, gpu, folder):
    """Runs both of each pair, in one process that has imported torch and its children; the traces by program and which."""
    environment = {key: value for key, value in os.environ.items()
                   if key == "RFINJECT_LIBRARY" or not key.startswith(("RFINJECT", "LD_PRELOAD", "CUDA_"))}
    # A command built with AddressSanitizer refuses to start after a preloaded library otherwise.
    environment |= {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", **compiling(folder),
                    "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0"}
    out = pathlib.Path(folder) / "traces"
    run = subprocess.run([RFINJECT, "--estimate", gpu, "--skip", "1", "--estimate-on",
                          "virtual-gpu" if has_virtual_gpu() else "cpu", "-o", f"{out}/", PYTHON, HERE / "in_children.py",
                          *programs], cwd=HERE / "pairs", env=environment, capture_output=True, text=True,
                         timeout=TIMEOUT_S * len(programs))
    if run.returncode != 0:
        raise RuntimeError(f"exit code {run.returncode}\n{run.stdout}\n{run.stderr}")
    traces = {path.name.split(".")[-2]: path for path in out.glob("*.rfx")}
    ran = (line.split()[1:] for line in run.stdout.splitlines() if line.startswith("ran "))
    return {(program, which): traces[pid] for program, which, pid in ran}


def advise(trace):
    """What `rfinject advise` says of one program of a pair."""
    said = subprocess.run([RFINJECT, "advise", trace, "--format", "json"], capture_output=True, text=True,
                          env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}, timeout=TIMEOUT_S, check=True)
    (only,) = json.loads(said.stdout)["runs"]
    return only


class Pair:
    """What `rfinject advise` said of both programs of a pair. Times are in ms a step."""

    def __init__(self, program, traces):
        self.program = program
        self.rule, _, batches = PAIRS[program]
        fault, mended = (advise(traces[program, which]) for which in ("fault", "mended"))
        self.of_fault, self.of_mended = (next(rule for rule in of["rules"] if rule["rule"] == self.rule)
                                         for of in (fault, mended))
        time = "clock_time_per_step_ns" if program in BY_THE_CLOCK else "gpu_time_per_step_ns"
        self.fault_ms = fault[time] / 1e6
        self.mended_ms = mended[time] / 1e6 / batches
        self.gain_ms = self.fault_ms - self.mended_ms
        self.predicted_ms = (self.of_fault["gain_ns_per_step"] or 0) / 1e6

    @property
    def error(self):
        return self.predicted_ms / self.gain_ms - 1 if self.gain_ms > 0 else float("inf")

    @property
    def holds(self):
        return self.of_fault["state"] == "holds" and self.of_mended["state"] != "holds" and abs(self.error) <= TOLERANCE


def unproven():
    """Name and reason of each rule that no pair has shown to be right, in the order of rules.txt."""
    found, name, longer = [], None, False
    for line in RULES.read_text().splitlines():
        words = line.split()
        if line.startswith("rule "):
            name, longer = words[1], False
        elif line.startswith("  unproven "):
            found.append((name, " ".join(words[1:])))
            longer = True
        elif longer and line.startswith("   "):
            found[-1] = (found[-1][0], found[-1][1] + " " + " ".join(words))
        else:
            longer = False
    return found


def update(what, lines):
    """Replaces what docs/reference/ADVICE.md has between its marks."""
    begin, end = f"<!-- made by pair_runs.py --update: {what} -->\n", "<!-- end -->"
    head, rest = DOCUMENT.read_text().split(begin, 1)
    DOCUMENT.write_text(head + begin + "".join(line + "\n" for line in lines) + end + rest.split(end, 1)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpu", action="append", help=f"of the table of GPUs; default {GPU}")
    parser.add_argument("--update", action="store_true", help="write docs/reference/ADVICE.md, too")
    options = parser.parse_args()
    gpus = options.gpu or [GPU]
    lines = []

    def say(line):
        lines.append(line)
        print(line, flush=True)

    folder = tempfile.mkdtemp(prefix="rfinject-advice-")
    failed = 0
    try:
        say("| program | GPU | with the fault, ms | mended, ms | won, ms | predicted, ms | off | of the mended one |")
        say("|---|---|---|---|---|---|---|---|")
        for program in PAIRS:
            if not can_run(program):
                print(f"note: {program} needs a torch for CUDA and the virtual GPU", file=sys.stderr)
        for number, gpu in enumerate(gpus):
            programs = [program for program in PAIRS if can_run(program)]
            traces = run_all(programs, gpu, f"{folder}/{number}")
            for program in programs:
                pair = Pair(program, traces)
                failed += not pair.holds
                said = "holds" if pair.of_mended["state"] == "holds" else "silent"
                say(f"| {program} | {gpu} | {pair.fault_ms:.3f} | {pair.mended_ms:.3f} | {pair.gain_ms:.3f} | "
                    f"{pair.predicted_ms:.3f} | {100 * pair.error:+.1f} % | {said} |")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if options.update:
        update("the pairs", lines)
        update("the unproven", [f"* `{name}`: {reason}." for name, reason in unproven()])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
