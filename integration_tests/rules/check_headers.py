#!/usr/bin/env python3
"""Every header has its banner and its guard.

    check_headers.py [ROOT]       one line per violation, "file:line: text"; exit code 1 when there is one

"// File: name.h" and what the file defines come first; the guard is RFINJECT_ and the path from the root.
"""
import pathlib
import re
import sys

FOLDERS = ["proto", "gpus", "collector", "injector", "cli", "integration_tests", "bench"]


def guard_of(path):
    return "RFINJECT_" + re.sub(r"[^A-Za-z0-9]", "_", path).upper() + "_"


def check_header(path, text):
    """Yields (line, text) for each violation in the header `path`."""
    lines = text.split("\n")
    name = path.rsplit("/", 1)[-1]
    if lines[0] != f"// File: {name}":
        yield 1, f'the first line must be "// File: {name}"'
    elif not (len(lines) > 2 and lines[1] == "//" and re.match(r"// \S", lines[2])):
        yield 2, "after the banner, say what this file defines"
    guard = guard_of(path)
    code = [(number, line) for number, line in enumerate(lines, 1) if line.strip() and not line.startswith("//")]
    if [line for _, line in code[:2]] != [f"#ifndef {guard}", f"#define {guard}"]:
        yield code[0][0] if code else 1, f"the guard must be {guard}"
    elif code[-1][1] != f"#endif  // {guard}":
        yield code[-1][0], f'the last line must be "#endif  // {guard}"'


def main(arguments):
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).resolve().parents[2])
    bad = False
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.h")):
            relative = path.relative_to(root).as_posix()
            for line, text in check_header(relative, path.read_text(encoding="utf-8")):
                print(f"{relative}:{line}: {text}")
                bad = True
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
