#!/usr/bin/env python3
"""No tracked file is larger than 2 MB but those that are listed here; scripts pass shellcheck, Python passes pyflakes3.

    check_files.py [ROOT]       one line per violation; exit code 1 when there is one

A tool that is not installed is said in a line that begins with "note:"; scripts/setup installs both.
"""
import ast
import os
import pathlib
import shutil
import subprocess
import sys

CHANGES = "injector/changes"
LIMIT = 2_000_000
LARGE = set()  # paths, each with the reason why it cannot be smaller


def tracked(root):
    """The files that git tracks below ROOT; in a tree without git (a source archive) all but what is built."""
    try:
        result = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], capture_output=True)
    except OSError:
        result = None
    if result is not None and result.returncode == 0:
        names = [os.fsdecode(name) for name in result.stdout.split(b"\0") if name]
        return [name for name in names if (root / name).is_file()]
    found = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    return [path.as_posix() for path in found if path.parts[0] not in ("build", "rfinject-out", ".git")]


def first_line(path):
    with open(path, "rb") as file:
        return file.readline(100)


def too_large(root, names, limit=LIMIT, large=frozenset(LARGE)):
    return [f"{name}: {(root / name).stat().st_size} bytes, more than {limit}; list it in check_files.py if it must be"
            for name in names if name not in large and (root / name).stat().st_size > limit]


def names_of_changes(root):
    """The names that a change of `rfinject try` finds there: those of frame.py and edits.py, and two of its own."""
    paths = [root / CHANGES / name for name in ("frame.py", "edits.py")]
    found = {"OPTIONS", "change", "value"}
    for node in [node for path in paths if path.exists() for node in ast.parse(path.read_text()).body]:
        found.update([node.name] if hasattr(node, "name") else ())
        found.update(alias.name for alias in getattr(node, "names", ()))
        found.update(target.id for target in getattr(node, "targets", ()) if isinstance(target, ast.Name))
    return found


def complaints(root, tool, command, names, environment=None):
    """The lines of a tool that reads all of NAMES."""
    if not names:
        return []
    if shutil.which(tool) is None:
        print(f"note: no {tool} here: not checked")
        return []
    result = subprocess.run([*command, *names], cwd=root, capture_output=True, text=True, env={**os.environ, **(environment or {})})
    return (result.stdout + result.stderr).splitlines() if result.returncode != 0 else []


def check(root):
    names = tracked(root)
    begins = {name: first_line(root / name) for name in names}
    shell = [name for name in names if name.endswith(".sh") or (begins[name].startswith(b"#!") and
                                                                begins[name].split()[-1].endswith(b"sh"))]
    python = [name for name in names if name.endswith(".py") or (begins[name].startswith(b"#!") and
                                                                 b"python" in begins[name])]
    return (too_large(root, names) + complaints(root, "shellcheck", ["shellcheck", "-x"], shell)
            + complaints(root, "pyflakes3", ["pyflakes3"], [name for name in python if not name.startswith(CHANGES)])
            + complaints(root, "pyflakes3", ["pyflakes3"], [name for name in python if name.startswith(CHANGES)],
                         {"PYFLAKES_BUILTINS": ",".join(names_of_changes(root))}))


def main(arguments):
    found = check(pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).resolve().parents[2]))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
