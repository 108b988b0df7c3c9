#!/usr/bin/env python3
"""Runs programs as others write them on the virtual GPU, and holds what rfinject says against what they are.

    run.py [--python PYTHON] [--page FILE] [--only NAME[,NAME]] [--quick] [--keep FOLDER]

Each line of programs.txt is a program; its head says what the columns mean. RFINJECT names the command, RFINJECT_PYTHON the
interpreter. With --page, that page's lines about this torch and the programs that ran say what was seen. --quick runs the
programs that need torch and torchvision alone. Exit code 1 when a program is not as its line says; 77 where no program can run.
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

import page

HERE = pathlib.Path(__file__).resolve().parent
GPU = "A100-SXM4-80GB"
LIMIT_S = 300
# The operators of each kind that FlopCounterMode counts.
KINDS = {"products": re.compile(r"aten::(mm|addmm|bmm|baddbmm)$"),
         "convolutions": re.compile(r"aten::(cudnn_)?_?convolution(_backward)?(_overrideable)?$|"
                                    r"aten::(conv_depthwise3d|_conv_depthwise2d)$"),
         "attention": re.compile(r"aten::_scaled_dot_product_\w+_attention(_backward)?$")}
# What rfinject counts for each score of an attention, beside its products (operators/flop.cc).
PER_SCORE, PER_BACKWARD_SCORE = 4, 5
# FlopCounterMode counts five products of an attention's backward, and model FLOP are four: the scores are computed again.
COUNTED_BACKWARD = 5 / 4


@dataclasses.dataclass
class Program:
    name: str
    packages: list
    options: list
    command: list
    steps: int
    samples: int    # 0: rfinject does not know them, and says so
    layers: float   # least share, in %
    flop: bool      # they are FlopCounterMode's
    operators: list  # that have to have run
    quick: bool
    excuse: str     # why it is not so with this torch
    note: str


def programs(torch):
    """The lines of the table, as they are for that version of torch ("2.15")."""
    for line in (HERE / "programs.txt").read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        cells = list(map(str.strip, line.split("|")))
        name, packages, options, command, steps, samples, layers, flop, operators, quick, excuses, note = cells
        excuse = next((why for version, why in re.findall(r"([\d.]+): ([^;]+)", excuses) if version == torch), "")
        yield Program(name, packages.split(), options.split(), command.split(), int(steps), int(samples or 0), float(layers),
                      flop == "=", operators.split(), quick == "quick", excuse, note)


@dataclasses.dataclass
class Seen:
    code: int = -1
    seconds: float = 0
    steps: int = 0
    samples: int = 0
    layers: float = 0
    flop: dict = dataclasses.field(default_factory=dict)      # a step, by kind
    counted: dict = dataclasses.field(default_factory=dict)   # FlopCounterMode's
    peak_bytes: int = 0
    peak_said: int = 0   # by torch
    operators: set = dataclasses.field(default_factory=set)
    lines: list = dataclasses.field(default_factory=list)     # of rfinject's, on standard error
    wrong: list = dataclasses.field(default_factory=list)
    last: str = ""

    def flop_ratio(self):
        """Of all kinds together, or None."""
        said = sum(self.counted.values())
        return sum(self.flop.values()) / said if said else None


def asked(rfinject, *words):
    text = subprocess.run([rfinject, "report", *words, "--format", "json"], capture_output=True, text=True).stdout
    return json.loads(text) if text else None


def read_report(rfinject, folder, seen):
    """Reads what the run's reports say of its training into `seen`."""
    found = asked(rfinject, folder, "--by", "op", "--rows", "0")
    if found is None:
        return
    reports = [report for report in found.get("reports", [found]) if all(row["phase"] != "eval" for row in report["rows"])]
    seen.steps = sum(report["steps"] for report in reports)
    seen.samples = sum(report["summary"]["samples"] or 0 for report in reports)
    rows = [row for report in reports for row in report["rows"]]
    seen.operators = {row["op"] for row in rows if row["op"]}
    in_model = [row for row in rows if row["phase"] in ("forward", "backward", "recompute")]
    time_ns = sum(row["time_ns"] or 0 for row in in_model)
    seen.layers = sum(row["time_ns"] or 0 for row in in_model if row["model"]) / time_ns if time_ns else 0
    for kind, operators in KINDS.items():
        of_kind = [row for row in rows if operators.match(row["op"] or "")]
        for suffix in ("", "_backward") if kind == "attention" else ("",):
            chosen = [row for row in of_kind if kind != "attention" or row["op"].endswith("_backward") == bool(suffix)]
            seen.flop[kind + suffix] = sum(row["model_flop"] or 0 for row in chosen) / max(1, seen.steps)
    memory = asked(rfinject, folder, "--by", "memory")
    if memory is not None:
        seen.peak_bytes = max((run.get("allocated_bytes") or 0) for run in memory["runs"])


def measure(rfinject, python, program, folder):
    """Runs it once, and reads its report."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RFINJECT_")}
    environment |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "WANDB_DISABLED": "true",
                    "PYTHONDONTWRITEBYTECODE": "1"}
    words = [rfinject, "--estimate", GPU, *program.options, "-o", folder + "/", python, *program.command]
    seen, begun = Seen(), time.monotonic()
    try:
        done = subprocess.run(words, env=environment, cwd=HERE / "programs", capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        seen.wrong.append(f"did not end within {LIMIT_S} s")
        return seen
    seen.code, seen.seconds = done.returncode, time.monotonic() - begun
    seen.lines = [line for line in done.stderr.splitlines() if line.startswith("rfinject: ")]
    seen.last = next((line for line in reversed(done.stderr.splitlines()) if re.match(r"[\w.]+(Error|Exception)\b", line)),
                     (done.stderr.strip().splitlines() or [""])[-1])
    read_report(rfinject, folder, seen)
    # Lines of two ranks may stand in one.
    for said in re.findall(r"flop (\{[^}]*\})", done.stdout)[:1]:
        seen.counted = json.loads(said)
        scores, backward_scores = seen.counted.pop("scores"), seen.counted.pop("backward_scores")
        if "attention" in seen.flop:
            backward = seen.flop.pop("attention_backward") - PER_BACKWARD_SCORE * backward_scores
            seen.flop["attention"] += COUNTED_BACKWARD * backward - PER_SCORE * scores
    seen.peak_said = max(map(int, re.findall(r"peak (\d+)", done.stdout)), default=0)
    return seen


def judge(program, seen):
    """Adds what is not as the program's line says."""
    if seen.code != 0:
        seen.wrong.append(f"exit code {seen.code}: {seen.last[:200]}")
        return
    if seen.steps != program.steps:
        seen.wrong.append(f"{seen.steps} steps, not {program.steps}")
    if seen.samples != program.samples:
        seen.wrong.append(f"{seen.samples} samples, not {program.samples}")
    if seen.layers < program.layers / 100:
        seen.wrong.append(f"{100 * seen.layers:.1f} % of the time with a layer, not {program.layers:g} %")
    if seen.peak_said and seen.peak_said != seen.peak_bytes:
        seen.wrong.append(f"a peak of {seen.peak_bytes} bytes, not {seen.peak_said}")
    if program.flop and not seen.counted:
        seen.wrong.append("no count of FlopCounterMode's")
    for kind, count in seen.counted.items() if program.flop else ():
        if abs(seen.flop[kind] - count) > 1e-9 * count:
            seen.wrong.append(f"{seen.flop[kind]:.0f} FLOP of {kind}, not {count}")
    for operator in program.operators:
        if operator not in seen.operators:
            seen.wrong.append(f"{operator} did not run")


def excuse(program, seen):
    """What is known not to be whole has to be so."""
    if program.excuse:
        seen.wrong = [] if seen.wrong else ["is whole, though its line says why it cannot be"]


def torch_of(python):
    """Its version ("2.15"); "" where it has none that was built for CUDA."""
    code = "import torch; print('.'.join(torch.__version__.split('.')[:2]) if torch.version.cuda else '')"
    return subprocess.run([python, "-c", code], capture_output=True, text=True).stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=os.environ.get("RFINJECT_PYTHON", sys.executable))
    parser.add_argument("--page", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path, help="where the traces go, a folder for each program")
    given = parser.parse_args()
    rfinject, torch = os.path.abspath(os.environ["RFINJECT"]), torch_of(given.python)
    if not torch:
        print(f"note: {given.python} has no torch that is built for CUDA: the programs of third parties are not tried")
        return 77
    rows = []
    for program in programs(torch):
        if (given.quick and not program.quick) or (given.only and program.name not in given.only.split(",")):
            continue
        with tempfile.TemporaryDirectory(prefix="rfinject-third-party-") as temporary:
            seen = measure(rfinject, given.python, program, str(given.keep / program.name) if given.keep else temporary)
        judge(program, seen)
        seen_wrong = list(seen.wrong)
        excuse(program, seen)
        rows.append((program, seen))
        ratio = seen.flop_ratio()
        print(f"{program.name}: {'; '.join(seen.wrong) or (program.excuse or 'ok')} ({seen.seconds:.0f} s, {seen.steps} steps, "
              f"{seen.samples} samples, {100 * seen.layers:.2f} % with layers, FLOP x {ratio if ratio is None else round(ratio, 6)}, "
              f"peak {seen.peak_bytes})", flush=True)
        for line in seen.lines + (seen_wrong if program.excuse else []):
            print("  ", line[:300], flush=True)
    if not rows:
        print(f"error: no program of programs.txt is called {given.only}")
        return 1
    if given.page:
        page.write(given.page, torch, GPU, given.python, rows, [program.name for program in programs(torch)])
    whole = sum(not seen.wrong and not program.excuse for program, seen in rows)
    print(f"torch {torch}: {whole} of {len(rows)} programs are whole, "
          f"{sum(bool(program.excuse) for program, _ in rows)} are not for a reason that their lines say")
    return 1 if any(seen.wrong for _, seen in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
