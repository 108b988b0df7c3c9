#!/usr/bin/env python3
"""Tries the changes of `rfinject try` on programs as others write them, and holds what they come to against the programs
that a hand has edited.

    tries.py [--python PYTHON] [--page FILE] [--only NAME[,NAME]] [--change NAME[,NAME]]

Each line of tried.txt is a change of a program; its head says what the columns mean. edits/NAME.diff has the hand's edits,
a part for each change. Of each program, once, all changes are tried in one call. RFINJECT names the command. With --page,
that page's part about this torch is written. Exit code 1 when something is not as its line says; 77 where nothing can run.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import page

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import operator_rows  # noqa: E402
from run import torch_of  # noqa: E402

GPU = "A100-SXM4-40GB"
# Past what is done once, such as compiling, and up to the validation behind the second epoch.
WINDOW = ["--skip", "3", "--steps", "5"]
LIMIT_S = 1800


@dataclasses.dataclass
class Change:
    name: str
    kernels: str
    patch: str
    note: str
    said: str = ""       # what `try` said of it
    unchanged: bool = False  # the kernels are those of the program as it was
    wrong: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Program:
    name: str
    packages: list
    folder: str
    words: list
    changes: list = dataclasses.field(default_factory=list)
    together: str = ""   # what `try --diff` printed a patch of
    seconds: float = 0
    wrong: list = dataclasses.field(default_factory=list)


def programs():
    """The lines of the table."""
    found = []
    for line in (HERE / "tried.txt").read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        cells = list(map(str.strip, line.split("|")))
        if cells[0].startswith("program "):
            found.append(Program(cells[0].split()[1], cells[1].split(), cells[2], cells[3].split()))
        else:
            found[-1].changes.append(Change(*cells))
    return found


def edits(program):
    """The hand's edits of a program, by change: unified diffs."""
    path = HERE / "edits" / f"{program.name}.diff"
    parts = re.split(r"(?m)^== (.*)\n", path.read_text(encoding="utf-8"))[1:] if path.exists() else []
    return dict(zip(parts[::2], parts[1::2]))


class Runner:
    """Runs one program, as it is and edited, in copies of its folder below `temporary`."""

    def __init__(self, rfinject, python, program, temporary):
        self.rfinject, self.python, self.program = rfinject, python, program
        self._temporary, self._runs, self._seen = pathlib.Path(temporary), 0, {}
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(("RFINJECT", "CUDA_"))}
        self.environment |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "PYTHONDONTWRITEBYTECODE": "1",
                             "OMP_NUM_THREADS": "1"}

        # Which of its engines cuDNN then finds to be the fastest is chance where they take the same time.
        self._any_engine = any(change.name == "cudnn-benchmark" and change.kernels != "nothing to change" for change in program.changes)

    def _read(self, traces):
        rows = operator_rows.operators(self.rfinject, traces)
        return operator_rows.of_any_engine(rows) if self._any_engine else rows

    def _words(self):
        with socket.socket() as free:  # for a process group
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        return [self.python, *(word.format(port=port) for word in self.program.words)]

    def copy(self, diff=""):
        """The program's folder with an edit. Raises where that does not apply."""
        self._runs += 1
        folder = self._temporary / f"copy{self._runs}" / "project"
        shutil.copytree(HERE / "tried" / self.program.folder, folder)
        subprocess.run(["git", "init", "-q", "."], cwd=folder, check=True)
        if diff:
            done = subprocess.run(["git", "apply", "-"], cwd=folder, input=diff, text=True, capture_output=True, check=False)
            if done.returncode != 0:
                raise ValueError("the patch does not apply: " + done.stderr.strip()[:200])
        return folder

    def operators(self, diff):
        """Those of the edited program. The same text is run once."""
        folder = self.copy(diff)
        text = tuple(path.read_text() for path in sorted(folder.glob("*.py")))
        if text not in self._seen:
            words = [self.rfinject, "--estimate", GPU, *WINDOW, "-o", f"{folder.parent}/traces/", *self._words()]
            done = subprocess.run(words, cwd=folder, env=self.environment, capture_output=True, text=True, timeout=LIMIT_S,
                                  check=False)
            if done.returncode != 0:
                raise ValueError("the edited program fails: " + (done.stderr.strip().splitlines() or [""])[-1][:200])
            self._seen[text] = self._read(f"{folder.parent}/traces/")
        return self._seen[text]

    def tries(self, changes):
        """What `try` says, its patch, and the operators of each of its runs."""
        folder = self.copy()
        words = [self.rfinject, "try", "--estimate", GPU, *WINDOW, "--whole", "--keep", "--diff", "--format", "json",
                 "-o", f"{folder.parent}/trials.json", *changes, *self._words()]
        done = subprocess.run(words, cwd=folder, env=self.environment | {"TMPDIR": str(folder.parent)}, capture_output=True,
                              text=True, timeout=LIMIT_S, check=False)
        if done.returncode != 0:
            raise ValueError("try fails: " + (done.stderr.strip().splitlines() or [""])[-1][:300])
        kept = re.search(r"everything is kept in (\S+)", done.stderr)[1]
        trials = json.loads((folder.parent / "trials.json").read_text())["trials"]
        rows = [self._read(f"{kept}/run{i}/traces/") if trial["state"] in ("baseline", "made") else []
                for i, trial in enumerate(trials, start=1)]
        return trials, rows, done.stdout


def operators_apart(word):
    """Those that a word of the table leaves out: of "same but OP OP", and of "but OP OP"."""
    _, found, operators = word.rpartition("but ")
    return operators.split() if found else []


def compare(expected, rows, others, whose):
    """What is not as the word of the table says, a list."""
    apart = operators_apart(expected)
    rows, others = ([row for row in all_rows if dict(row)["op"] not in apart] for all_rows in (rows, others))
    if expected.startswith("launches"):
        rows, others = operator_rows.launches(rows), operator_rows.launches(others)
        near = lambda a, b: a and b and a[0] == b[0] and abs(a[1] - b[1]) <= 0.01 * b[1]  # the L2 cache's part differs
        lines = [f"{op} {rows.get(op)} {others.get(op)}" for op in sorted({*rows, *others}) if not near(rows.get(op), others.get(op))]
    else:
        lines = operator_rows.differences(rows, others)
    return [f"other kernels than {whose}: " + "; ".join(lines)] if lines else []


def judge(runner, change, trial, rows, baseline, edit):
    """Adds what is not as the change's line says."""
    change.said = trial["text"]
    made = change.kernels not in ("already made", "nothing to change")
    if trial["state"] != ("made" if made else change.kernels):
        change.wrong.append(f"{trial['state']}: {trial['text']}")
        return
    if not made:
        return
    change.unchanged = rows == baseline
    if not edit:
        change.wrong.append("edits/ has no edit by hand")
    else:
        change.wrong += compare(change.kernels, rows, runner.operators(edit), "the program edited by hand")
    if bool(trial["diffs"]) != (change.patch != "-"):
        change.wrong.append("no patch" if change.patch != "-" else "a patch, of which the line says that there is none")
    elif trial["diffs"]:
        expected = "launches" if change.kernels.startswith("launches") else change.patch
        change.wrong += compare(expected, runner.operators("".join(trial["diffs"])), rows, "the variant, with its patch")


def judge_together(runner, program, trials, rows, patch):
    """What --diff prints is the patch of the best changes together, and comes to their kernels."""
    best = [(trial, own) for trial, own in zip(trials, rows) if trial["recommended"]]
    if not best:
        return
    most = max(best, key=lambda pair: (pair[0]["change"].count(" + "), pair[0]["won_ns"]))
    program.together = most[0]["change"]
    by_name = {change.name: change for change in program.changes}
    names = program.together.split(" + ")
    without = [name for name in names if by_name[name].patch == "-"]
    for name in without:
        if f"# {name} (" not in patch:
            program.wrong.append(f"--diff does not say that {name} has no patch")
    if len(without) == len(names):
        return
    apart = [op for name in names for op in operators_apart(by_name[name].patch)]
    patched = runner.operators(patch)
    if not without:
        program.wrong += compare("same but " + " ".join(apart), patched, most[1], f"{program.together}, with its patch")


def measure(rfinject, python, program):
    """Tries all changes of one program."""
    begun, hand = time.monotonic(), edits(program)
    with tempfile.TemporaryDirectory(prefix="rfinject-tries-") as temporary:
        runner = Runner(rfinject, python, program, temporary)
        try:
            trials, rows, patch = runner.tries([change.name for change in program.changes])
            by_name = {trial["change"]: (trial, own) for trial, own in zip(trials, rows)}
            for change in program.changes:
                try:
                    judge(runner, change, *by_name[change.name], rows[0], hand.get(change.name, ""))
                except (ValueError, subprocess.SubprocessError) as failure:
                    change.wrong.append(str(failure))
            judge_together(runner, program, trials, rows, patch)
        except (ValueError, subprocess.SubprocessError) as failure:
            program.wrong.append(str(failure))
        for path in pathlib.Path(temporary).glob("copy*/rfinject-try-*/run*/files/overlay/work"):
            path.chmod(0o700)  # which an overlay leaves closed
    program.seconds = time.monotonic() - begun


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=os.environ.get("RFINJECT_PYTHON", sys.executable))
    parser.add_argument("--page", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--change", default="")
    given = parser.parse_args()
    rfinject, torch = os.path.abspath(os.environ["RFINJECT"]), torch_of(given.python)
    if not torch:
        print(f"note: {given.python} has no torch that is built for CUDA: no change is tried on programs of third parties")
        return 77
    done = []
    for program in programs():
        if given.only and program.name not in given.only.split(","):
            continue
        if given.change:
            program.changes = [change for change in program.changes if change.name.split("=")[0] in given.change.split(",")]
        measure(rfinject, given.python, program)
        done.append(program)
        if given.page and not given.change:
            page.write_tries(given.page, torch, GPU, [program])
        print(f"{program.name}: {'; '.join(program.wrong) or 'ok'} ({program.seconds:.0f} s; together: {program.together})")
        for change in program.changes:
            print(f"  {change.name}: {'; '.join(change.wrong)[:3000] or 'ok'} ({change.kernels}: {change.said})", flush=True)
    if not done:
        print(f"error: no program of tried.txt is called {given.only}")
        return 1
    wrong = sum(bool(program.wrong) + sum(bool(change.wrong) for change in program.changes) for program in done)
    print(f"torch {torch}: {sum(len(program.changes) for program in done)} changes of {len(done)} programs, {wrong} not as their "
          "lines say")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
