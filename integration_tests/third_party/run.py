#!/usr/bin/env python3
"""Runs programs as others write them on the virtual GPU, and holds what rfinject says against what they are.

    run.py [--python PYTHON] [--results FILE] [--only NAME[,NAME]] [--quick]

Each line of programs.txt is a program; its head says what the columns mean. RFINJECT names the command. With --results a
page is written that says what was seen of each. Exit code 1 when a program is not as its line says.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
GPU = "A100-SXM4-80GB"
LIMIT_S = 300
# What FlopCounterMode counts: products, convolutions and attention, each forward and backward.
COUNTED = re.compile(r"aten::(mm|addmm|bmm|baddbmm|_grouped_mm|(_|cudnn_)?convolution(_backward)?(_overrideable)?|"
                     r".*scaled_dot_product.*attention.*|_(flash|efficient)_attention_(forward|backward))$")


@dataclasses.dataclass
class Program:
    name: str
    packages: list
    options: list
    command: list
    code: int
    steps: int
    samples: int
    layers: float
    flop: float  # 0: not compared; else how far from FlopCounterMode's at most, as a share
    quick: bool
    note: str


def programs():
    """The lines of the table."""
    for line in (HERE / "programs.txt").read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        name, packages, options, command, code, steps, samples, layers, flop, quick, note = map(str.strip, line.split("|"))
        yield Program(name, packages.split(), options.split(), command.split(), int(code), int(steps or 0), int(samples or 0),
                      float(layers or 0), float(flop or 0), quick == "quick", note)


def reports_of(rfinject, folder, by):
    text = subprocess.run([rfinject, "report", folder, "--by", by, "--rows", "0", "--format", "json"],
                          capture_output=True, text=True).stdout
    if not text:
        return []
    found = json.loads(text)
    return found["reports"] if "reports" in found else [found]


@dataclasses.dataclass
class Seen:
    code: int = -1
    seconds: float = 0
    steps: int = 0
    samples: int = 0
    layers: float = 0
    flop_ratio: float = 0
    peak_bytes: int = 0
    lines: list = dataclasses.field(default_factory=list)  # of rfinject's, on standard error
    wrong: list = dataclasses.field(default_factory=list)
    last: str = ""


def measure(rfinject, python, program, folder):
    """Runs it once, and reads its report."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RFINJECT_")}
    environment |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "WANDB_DISABLED": "true"}
    script = [python, *program.command] if program.command[0] == "-m" else [python, str(HERE / "programs" / program.command[0]),
                                                                           *program.command[1:]]
    words = [rfinject, "--estimate", GPU, *program.options, "-o", folder + "/", *script]
    seen, begun = Seen(), time.monotonic()
    try:
        done = subprocess.run(words, env=environment, cwd=HERE / "programs", capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        seen.wrong.append(f"did not end within {LIMIT_S} s")
        return seen
    seen.code, seen.seconds = done.returncode, time.monotonic() - begun
    seen.lines = [line for line in done.stderr.splitlines() if line.startswith("rfinject: ")]
    seen.last = (done.stderr.strip().splitlines() or [""])[-1]
    reports = [report for report in reports_of(rfinject, folder, "op") if not any(
        row["phase"] == "eval" for row in report["rows"])]
    if not reports:
        return seen
    seen.steps = sum(report["steps"] for report in reports)
    seen.samples = sum(report.get("samples") or 0 for report in reports)
    rows = [row for report in reports for row in report["rows"] if row["phase"] in ("forward", "backward", "recompute")]
    time_ns = sum(row["time_ns"] or 0 for row in rows)
    seen.layers = sum(row["time_ns"] or 0 for row in rows if row["model"]) / time_ns if time_ns else 0
    said = re.search(r"^flop (\d+)$", done.stdout, re.MULTILINE)
    if said and seen.steps and int(said[1]):
        counted = sum(row["model_flop"] or 0 for report in reports for row in report["rows"] if COUNTED.match(row["op"] or ""))
        seen.flop_ratio = counted / seen.steps / int(said[1])
    memory = subprocess.run([rfinject, "report", folder, "--by", "memory", "--format", "json"], capture_output=True,
                            text=True).stdout
    if memory:
        seen.peak_bytes = max((run.get("peak_bytes") or 0) for run in json.loads(memory)["runs"])
    return seen


def judge(program, seen):
    """Adds what is not as the program's line says."""
    if seen.code != program.code:
        seen.wrong.append(f"exit code {seen.code}, not {program.code}: {seen.last[:200]}")
    if program.steps and seen.steps != program.steps:
        seen.wrong.append(f"{seen.steps} steps, not {program.steps}")
    if program.samples and seen.samples != program.samples:
        seen.wrong.append(f"{seen.samples} samples, not {program.samples}")
    if program.layers and seen.layers < program.layers / 100:
        seen.wrong.append(f"{100 * seen.layers:.1f} % of the time with a layer, not {program.layers:g} %")
    if program.flop and not abs(seen.flop_ratio - 1) <= program.flop:
        seen.wrong.append(f"{seen.flop_ratio:.6f} of FlopCounterMode's FLOP")


def versions(python, packages):
    code = "import importlib.metadata as m, sys\nfor p in sys.argv[1:]: print(p, m.version(p))"
    return subprocess.run([python, "-c", code, *packages], capture_output=True, text=True, check=True).stdout.split("\n")[:-1]


def page(rows, python):
    """What was seen, as Markdown."""
    packages = sorted({package for program, _ in rows for package in program.packages} | {"torch"})
    lines = ["# Programs of third parties on the virtual GPU", "",
             "Written by `scripts/test --third-party`; each line is a program that ran on the virtual GPU of an " + GPU + ".",
             "Layers: the share of the time of forward and backward that has a layer. FLOP: those of products, convolutions and",
             "attention over what `torch.utils.flop_counter.FlopCounterMode` counted of the program's first step, which is in no",
             "report. Seconds are those of a machine that did other things, too.", "",
             "With " + ", ".join(versions(python, packages)) + ".", "",
             "| program | exit code | steps | samples | layers | FLOP | peak | seconds | to know |",
             "|---|---|---|---|---|---|---|---|---|"]
    for program, seen in rows:
        flop = f"{seen.flop_ratio:.4f}" if seen.flop_ratio else "-"
        peak = f"{seen.peak_bytes / 1e6:.0f} MB" if seen.peak_bytes else "-"
        known = "; ".join(filter(None, [program.note, *("**" + wrong.replace("|", "/") + "**" for wrong in seen.wrong)]))
        lines.append(f"| {program.name} | {seen.code} | {seen.steps} | {seen.samples or '-'} | {100 * seen.layers:.1f} % | {flop} "
                     f"| {peak} | {seen.seconds:.0f} | {known} |")
    whole = sum(not seen.wrong for _, seen in rows)
    lines += ["", f"{whole} of {len(rows)} are as their lines in `programs.txt` say.", ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", default=os.environ.get("RFINJECT_PYTHON", sys.executable))
    parser.add_argument("--results", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    rfinject = os.environ["RFINJECT"]
    rows = []
    for program in programs():
        if (given.quick and not program.quick) or (given.only and program.name not in given.only.split(",")):
            continue
        with tempfile.TemporaryDirectory(prefix="rfinject-third-party-") as folder:
            seen = measure(rfinject, given.python, program, folder)
        judge(program, seen)
        rows.append((program, seen))
        print(f"{program.name}: {'; '.join(seen.wrong) or 'ok'} ({seen.seconds:.0f} s, {seen.steps} steps, {seen.samples} samples, "
              f"{100 * seen.layers:.2f} % with layers, FLOP x {seen.flop_ratio:.6f})", flush=True)
        for line in seen.lines:
            print("  ", line[:300], flush=True)
    if given.results:
        given.results.write_text(page(rows, given.python), encoding="utf-8")
    return 1 if any(seen.wrong for _, seen in rows) or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
