#!/usr/bin/env python3
"""No file is above 600 lines but tables of data, no function above 80, and no class has more than 300 lines or 25 data members,
those of its bases counted.

    check_sizes.py [ROOT]       one line per violation; exit code 1 when there is one

C++ is read by its brackets, not by its grammar: what stands in front of a brace says whether it opens a namespace, a class,
a function or a list of values. Python is read by its own parser, and of scripts in other languages only the file counts.
"""
import ast
import pathlib
import re
import sys

from check_files import first_line, tracked

FILE_LINES = 600
FUNCTION_LINES = 80
CLASS_LINES = 300
CLASS_MEMBERS = 25
# Classes that are larger, and by how much; none may grow.
STILL_LARGE = {"cli/import/ncu/ncu_csv.cc: NcuImporter": 317, "cli/import/nsys/nsys_sqlite.cc: NsysImporter": 417,
               "cli/trace/encode.cc: ProfileWriter": 331, "cli/import/torch/recording.cc: Handler": 34}
# Data: what is read row by row.
TABLES = {"operators/op_table.cc"}

CPP = (".cc", ".h", ".c", ".cu")
SCRIPTS = (".py", ".mjs", ".js", ".sh", ".cmake", ".css")

TOKEN = re.compile(r"""
    //[^\n]* | /\*.*?\*/                                         # comments
  | R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"                         # raw strings
  | "(?:\\.|[^"\\\n])*" | (?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])*'    # strings and characters, but no 1'000
  | ^[ \t]*\#(?:\\\n|[^\n])*                                      # directives
""", re.S | re.M | re.X)
FUNCTION = re.compile(r"\)\s*(?:const|noexcept(?:\([^()]*\))?|override|final|mutable|&{1,2}|->[^;=]*|:[^:].*|[A-Z_]+\([^()]*\)|\s)*$",
                      re.S)
CLASS = re.compile(r"^\s*(?:template\s*<.*>\s*)?(?:typedef\s+)?(?:class|struct|union)\b", re.S)
ACCESS = re.compile(r"^(?:\s*(?:public|private|protected)\s*:)+")
MEMBER_INIT = re.compile(r"\)\s*(?:noexcept\s*)?:[^:]")  # of a constructor
NO_MEMBER = re.compile(r"^\s*(?:using|friend|typedef|static|enum|class|struct|union|template|extern|public|private|protected|"
                       r"constexpr|inline|operator)\b")


def blanked(text):
    """TEXT without comments, texts and directives, each line where it was."""
    return TOKEN.sub(lambda match: "\n" * match.group(0).count("\n") + '""' * match.group(0).startswith('"'), text)


def members_in(statement):
    """How many data members STATEMENT, what stands in a class up to a semicolon, declares."""
    statement = ACCESS.sub("", statement)
    while True:  # brackets of all kinds, from the inside out
        shorter = re.sub(r"\{[^{}]*\}|<[^<>]*>|\[[^\[\]]*\]", " ", statement)
        if shorter == statement:
            break
        statement = shorter
    statement = re.sub(r"\b(?:alignas|RFINJECT_\w+|ABSL_\w+|__attribute__)\s*\((?:[^()]|\([^()]*\))*\)", " ", statement)
    declared = statement.split("=")[0]
    if not statement.strip() or NO_MEMBER.match(statement) or "(" in declared or "operator" in declared:
        return 0
    depth, count = 0, 1
    for char in statement:
        depth += (char in "(") - (char in ")")
        count += char == "," and depth == 0
    return count


def parts(text):
    """Yields (kind, name, first line, lines, members) for each function and class of a C++ text."""
    text = blanked(text)
    stack = []  # [kind, header, first line, members, where the header of what is inside began]
    begin = 0
    for match in re.finditer(r"[{};]", text):
        at, char = match.start(), match.group(0)
        kind = stack[-1][0] if stack else "namespace"
        header = text[begin:at]
        if char == "{":
            header = ACCESS.sub("", header).lstrip()
            first = text.count("\n", 0, at - len(header)) + 1
            header = header.rstrip()
            if kind in ("function", "values"):
                opened = kind if kind == "values" else "inner"
            elif kind == "inner":
                opened = "inner"
            elif MEMBER_INIT.search(header) and not text[at - 1].isspace():
                opened = "values"
            elif re.match(r"(?:inline\s+)?namespace\b|extern\s*\"\"$", header):
                opened = "namespace"
            elif CLASS.match(header) and not FUNCTION.search(header):
                opened = "class"
            elif FUNCTION.search(header) and "=" not in header.split("(")[0].replace("operator=", "").replace("==", ""):
                opened = "function"
            else:
                opened = "values"
            stack.append([opened, header, first, 0, begin])
            if opened != "values":
                begin = at + 1
            continue
        if char == "}":
            if not stack:
                continue
            opened, header, first, members, outer = stack.pop()
            lines = text.count("\n", 0, at) + 2 - first
            if opened in ("function", "class"):
                yield opened, header, first, lines, members
            begin = outer if opened in ("values", "class") and header else at + 1
            if opened == "class":  # "struct A { ... } a;" declares one more
                begin = at + 1
            continue
        if kind == "class":
            stack[-1][3] += members_in(header)
        if kind != "values":
            begin = at + 1


def name_of(header):
    """The last name in front of the bracket of a function, or of a class."""
    header = re.sub(r"\s+", " ", header)
    match = re.search(r"([~\w:]+|operator\W+)\s*\(", re.sub(r"<[^<>]*>", "", header))
    if match and not CLASS.match(header):
        return match.group(1)
    match = re.match(r"(?:template\s*<.*>\s*)?(?:class|struct|union)\s+(?:\w+\(.*?\)\s*)?([\w:]*)", header)
    return match.group(1) if match else header[-40:]


def bases_of(header):
    """The last names of the classes that the header of a class derives from."""
    _, colon, bases = re.sub(r"<[^<>]*>", "", header.replace("::", "\0")).partition(":")
    words = (re.findall(r"[\w\0]+", base) for base in bases.split(",") if colon)
    return [found[-1].split("\0")[-1] for found in words if found]


def check_members(classes):
    """CLASSES are tuples: file, line, name, members, bases. A base whose name several classes have is not counted."""
    by_name = {}
    for one in classes:
        by_name.setdefault(one[2], []).append(one)

    def members(one, seen):
        file, _, name, own, bases = one
        for base in set(bases) - seen:
            found = by_name.get(base, [])
            near = [other for other in found if other[0] == file] or found
            if len(near) == 1:
                own += members(near[0], seen | {name, base})
        return own

    for one in classes:
        count = members(one, set())
        if count > max(CLASS_MEMBERS, STILL_LARGE.get(f"{one[0]}: {one[2]}", 0)):
            with_bases = " with its bases" if count > one[3] else ""
            yield f"{one[0]}:{one[1]}: {one[2]} has {count} data members{with_bases}, more than {CLASS_MEMBERS}"


def check_cpp(name, text, classes):
    for kind, header, first, lines, members in parts(text):
        if kind == "function" and lines > FUNCTION_LINES:
            yield f"{name}:{first}: {name_of(header)} has {lines} lines, more than {FUNCTION_LINES}"
        if kind == "class":
            classes.append((name, first, name_of(header), members, bases_of(header)))
            if lines > max(CLASS_LINES, STILL_LARGE.get(f"{name}: {name_of(header)}", 0)):
                yield f"{name}:{first}: {name_of(header)} has {lines} lines, more than {CLASS_LINES}"


def check_python(name, text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            lines = node.end_lineno - node.lineno + 1
            if lines > FUNCTION_LINES:
                yield f"{name}:{node.lineno}: {node.name} has {lines} lines, more than {FUNCTION_LINES}"


def check(root):
    found, classes = [], []
    for name in tracked(root):
        python = name.endswith(".py") or b"python" in first_line(root / name)[:40]
        script = name.endswith(SCRIPTS) or first_line(root / name).startswith(b"#!")
        if not (python or script or name.endswith(CPP)):
            continue
        text = (root / name).read_text(encoding="utf-8")
        lines = text.count("\n")
        if lines > FILE_LINES and name not in TABLES:
            found.append(f"{name}: {lines} lines, more than {FILE_LINES}; split it by subject")
        if name.endswith(CPP):
            found += check_cpp(name, text, classes)
        elif python:
            found += check_python(name, text)
    return found + list(check_members(classes))


def main(arguments):
    found = check(pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).resolve().parents[2]))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
