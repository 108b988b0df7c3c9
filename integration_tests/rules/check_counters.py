#!/usr/bin/env python3
"""Names of hardware counters stand in gpus/ only, from which the collector, the report and the imports take them.

    check_counters.py [ROOT]      one line per violation, "file:line: text"; exit code 1 when there is one

Tests and comments may name counters: a test that took its names from the table would not see a mistake in it.
"""
import pathlib
import re
import sys

FOLDERS = ["collector", "injector", "cli"]
# A whole literal that is a counter's name in CUPTI, or begins one: "dram__bytes_read.sum", "sm__ops_path_tensor_".
COUNTER = re.compile(r'"[a-z][a-z0-9]*__[a-z0-9_.]+"')


def violations(text):
    """The (line, literal) of each counter that C++ code names, comments aside."""
    for number, line in enumerate(text.splitlines(), 1):
        for literal in COUNTER.findall(line.partition("//")[0]):
            yield number, literal


def main(arguments):
    # A check that never finds anything would prove nothing.
    assert list(violations('f("dram__bytes.sum");  // "lts__t_bytes.sum"\n')) == [(1, '"dram__bytes.sum"')]
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).resolve().parents[2])
    bad = False
    for folder in FOLDERS:
        for path in sorted([*(root / folder).rglob("*.cc"), *(root / folder).rglob("*.h")]):
            relative = path.relative_to(root).as_posix()
            if "_test." in path.name or "/testing/" in relative:
                continue
            for line, literal in violations(path.read_text(encoding="utf-8")):
                print(f"{relative}:{line}: {literal} is a counter's name: gpus/counters.h is their place")
                bad = True
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
