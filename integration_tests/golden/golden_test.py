#!/usr/bin/env python3
"""Every output of the command, of traces as they were written once, is byte for byte what it was.

    golden_test.py --rfinject BIN                    compares with expected.txt; exit code 1 where an output differs
    golden_test.py --rfinject BIN --against OTHER    the same with another build's outputs, and shows the first lines that differ
    golden_test.py --rfinject BIN --update           writes expected.txt; look at --against an older build first

The traces in traces/ are of format 1.0 and are read for ever: a change of the format or of the reader that loses them
fails here. `expected.txt` has a line for each case: the SHA-256 of exit code, standard output and standard error, and
the arguments. make_traces.md says how the traces were made.
"""
import argparse
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "studies"))
import make_fixtures  # noqa: E402

# How a case names the folder with the CSVs of the studies, which are made for the run.
STUDIES = "../../studies/"
TRACES = HERE / "traces"
EXPECTED = HERE / "expected.txt"
FORMATS = ("table", "json", "csv", "html", "svg")
FOLDS = ("model", "phase", "layer", "op", "kernel", "source", "run")
DIFF_FOLDS = ("model", "phase", "layer", "op", "kernel")
# The differences that are shown of a case.
SHOWN_LINES = 6


def cases():
    """Argument lists. OUT in a word is a scratch file; "&&" begins another call of the command."""
    traces = sorted(path.name for path in TRACES.glob("*.rfx"))
    for name in traces:
        yield ["dump", name]
        for fold in FOLDS:
            for form in FORMATS:
                yield ["report", name, "--by", fold, "--format", form]
        yield ["report", name, "--strict"]
        yield ["report", name, "--roofs", "all", "--format", "json"]
        yield ["report", name, "--roof", "dram=1.36TB/s"]
    estimates = [name for name in traces if name.startswith("est-")]
    measured = [name for name in traces if name.startswith("sim-")]
    some = ["v100.rfx", "a100.rfx", "measured.rfx"]
    for form in FORMATS:
        yield ["report", *estimates, "--by", "run", "--format", form]
        yield ["report", *some, *measured, "--by", "run", "--format", form]
        yield ["report", *some, "--format", form]
        for fold in DIFF_FOLDS:
            for a, b in (("v100.rfx", "a100.rfx"), ("measured.rfx", "a100.rfx"), ("random1.rfx", "random2.rfx"),
                         ("sim-GA100.rfx", "sim-GH100.rfx"), ("est-gan.rfx", "est-resnet18.rfx")):
                yield ["diff", a, b, "--by", fold, "--format", form]
    yield ["report", "measured.rfx", "--theory", "a100.rfx"]
    yield ["report", "measured.rfx", "--theory", "a100.rfx", "--format", "json"]
    for together in (some, estimates, measured, ["random1.rfx", "random2.rfx", "random3.rfx", "tiny.rfx"]):
        yield ["merge", *together, "-o", "OUT", "&&", "report", "OUT", "--format", "json", "--by", "kernel"]
    yield ["import", "nsys", "nsys_small.sqlite", "-o", "OUT", "&&", "report", "OUT", "--format", "json", "--by", "kernel"]
    for study in sorted(make_fixtures.name(*row) for row in make_fixtures.PUBLISHED):
        yield ["import", "ncu", STUDIES + study, "-o", "OUT", "&&", "report", "OUT", "--format", "json"]
    yield ["gpus"]
    for bad in (["report", "nothere"], ["report", "v100.rfx", "--by", "foo"], ["diff", "v100.rfx"],
                ["report", "v100.rfx", "--format", "xyz"], ["frobnicate"], ["merge", "v100.rfx"],
                ["import", "ncu", "nothere.csv", "-o", "OUT"], ["dump"]):
        yield bad


def run(binary, words, scratch):
    """What a case gives: bytes with the exit code and both streams of its last call."""
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TZ": "UTC", "COLUMNS": "80"}
    out = str(pathlib.Path(scratch) / "out.rfx")
    if os.path.exists(out):
        os.unlink(out)
    calls = [[]]
    for word in words:
        calls.append([]) if word == "&&" else calls[-1].append(out if word == "OUT" else word.replace(STUDIES, f"{scratch}/"))
    text = b""
    for call in calls:
        done = subprocess.run([binary, *call], cwd=TRACES, env=environment, capture_output=True, timeout=120,
                              stdin=subprocess.DEVNULL)
        text += b"exit code %d\n%s---\n%s" % (done.returncode, done.stdout, done.stderr)
    return text.replace(os.fsencode(out), b"OUT").replace(os.fsencode(f"{scratch}/"), STUDIES.encode())


def show_difference(before, after):
    before, after = (text.decode("utf-8", "replace").split("\n") for text in (before, after))
    shown = 0
    for number in range(max(len(before), len(after))):
        old, new = (lines[number] if number < len(lines) else "(no line)" for lines in (before, after))
        if old == new:
            continue
        at = next((i for i, (x, y) in enumerate(zip(old, new)) if x != y), min(len(old), len(new)))
        begin = max(0, at - 60)
        print(f"  line {number + 1}, column {at + 1}\n    - {old[begin:begin + 160]}\n    + {new[begin:begin + 160]}")
        shown += 1
        if shown == SHOWN_LINES:
            return


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rfinject", required=True, type=os.path.abspath)
    parser.add_argument("--against", type=os.path.abspath)
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()

    expected = {}
    if EXPECTED.exists() and not options.update:
        for line in EXPECTED.read_text(encoding="utf-8").splitlines():
            digest, _, words = line.partition("  ")
            expected[words] = digest
    lines, differ, count = [], 0, 0
    with tempfile.TemporaryDirectory(prefix="rfinject-golden-") as scratch:
        make_fixtures.write(scratch)
        for words in cases():
            count += 1
            name = " ".join(words)
            got = run(options.rfinject, words, scratch)
            digest = hashlib.sha256(got).hexdigest()
            lines.append(f"{digest}  {name}")
            if options.against:
                reference = run(options.against, words, scratch)
                same = reference == got
            else:
                same = options.update or expected.pop(name, None) == digest
            if not same:
                differ += 1
                print(f"differs: rfinject {name}")
                if options.against:
                    show_difference(reference, got)
    if options.update:
        EXPECTED.write_text("\n".join(lines) + "\n", encoding="utf-8")
    elif not options.against:
        for name in expected:
            differ += 1
            print(f"expected.txt has a case that is none any more: {name}")
    if differ and not options.against:
        print("If this was meant: golden_test.py --rfinject BIN --against OLDER_BIN shows it, --update accepts it.")
    print(f"{count} cases, {differ} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
