#!/usr/bin/env python3
"""What documents point to is there, and they stay few.

    check_documents.py [ROOT]       one line per violation, "file:line: text"; exit code 1 when there is one

Checked are the relative links of every Markdown file, with their anchors; the paths of this tree that Markdown files name
in backticks; and the paths below docs/ that any text file names. A path may stand without its ending (`cli/model/expected`).
"""
import pathlib
import re
import sys

from check_files import tracked

MOST_PAGES = 19         # below docs/, without docs/measurements/, where each GPU has one
MOST_README_LINES = 80
MADE_UP = "integration_tests/rules/check_documents_test.py"  # its pages are not there

LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\s]+)[^`]*`")
FENCE = re.compile(r"^ {0,3}```")
PAGE = re.compile(r"(?<![\w/.-])docs/[\w/-]+\.(?:md|svg)\b")
PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)+/?")


def anchors(text):
    """The anchors that GitHub makes of a text's headings."""
    found, seen = set(), {}
    fenced = False
    for line in text.splitlines():
        fenced ^= bool(FENCE.match(line))
        heading = None if fenced else re.match(r"#+ +(.*?) *#*$", line)
        if heading:
            words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading.group(1)).replace("`", "")
            name = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
            found.add(name + (f"-{seen[name]}" if name in seen else ""))
            seen[name] = seen.get(name, 0) + 1
    return found


def exists(root, path):
    """Whether there is such a file or folder, or a file of that name with an ending."""
    place = root / path
    return place.exists() or any(place.parent.glob(place.name + ".*"))


def check_links(root, name, text):
    for number, line in enumerate(text.splitlines(), 1):
        for target in LINK.findall(line):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            place = (root / name).parent / path if path else root / name
            if not place.exists():
                yield f"{name}:{number}: {path} is not there"
            elif anchor and anchor not in anchors(place.read_text(encoding="utf-8")):
                yield f"{name}:{number}: {target} has no such heading"


def check_paths(root, name, text, folders):
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        fenced ^= bool(FENCE.match(line))
        for word in [] if fenced else CODE.findall(line):
            path = PATH.fullmatch(word.rstrip(",;:"))
            if path and path.group(0).split("/")[0] in folders and not exists(root, path.group(0)):
                yield f"{name}:{number}: {path.group(0)} is not there"


def check_pages(root, name, text):
    for number, line in enumerate(text.splitlines(), 1):
        for path in PAGE.findall(line):
            if not (root / path).exists():
                yield f"{name}:{number}: {path} is not there"


def check(root):
    names = tracked(root)
    folders = {name.split("/")[0] for name in names if "/" in name}
    violations = []
    for name in sorted(names):
        try:
            text = (root / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        violations += check_pages(root, name, text) if name != MADE_UP else []
        if name.endswith(".md"):
            violations += check_links(root, name, text)
            violations += check_paths(root, name, text, folders)
    pages = [name for name in names if re.fullmatch(r"docs/(?!measurements/).*\.md", name)]
    if len(pages) > MOST_PAGES:
        violations.append(f"docs: {len(pages)} pages, more than {MOST_PAGES}; say it where the reader looks for it already")
    if "README.md" in names:
        lines = len((root / "README.md").read_text(encoding="utf-8").splitlines())
        if lines > MOST_README_LINES:
            violations.append(f"README.md: {lines} lines, more than {MOST_README_LINES}")
    return list(dict.fromkeys(violations))  # a link below docs/ is a path, too


def main(arguments):
    violations = check(pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).resolve().parents[2]))
    for violation in violations:
        print(violation)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
