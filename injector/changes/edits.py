"""The program's text, and what a person would write into it. It runs behind frame.py, whose names it uses.

A function here says an edit: a file of the program's own and what is put where in it, (file, [(begin, end, text)]) with
begin and end as (line, byte) of the file as it was. None: the text has no place where it could be said without doubt. All
edits of a process are applied together, so that those of one line go along with each other.
"""
import ast

_files, _edits = {}, {}


def own(name):
    """Whether this file is the program's own: below its folder, and not of a package that was installed."""
    return name.startswith(HERE + os.sep) and "site-packages" not in name and "dist-packages" not in name


def own_places():
    """File and line of the frames of the program's own, the innermost first; ("", 0) behind them."""
    return [(os.path.abspath(name), line) for _, name, line in reversed(stack())
            if not name.startswith("<") and own(os.path.abspath(name))] + [("", 0)]


def source_of(name):
    """The lines of the program's own file, and its syntax tree; None for a package that was installed."""
    if name not in _files:
        _files[name] = None
        if own(name):
            try:
                with open(name, encoding="utf-8", newline="") as file:
                    text = file.read()
                _files[name] = text.splitlines(True), ast.parse(text)
            except (OSError, SyntaxError, ValueError):
                pass
    return _files[name]


def _applied(lines, edits):
    """The lines with all edits; None where two overlap, or where what comes of it is no Python."""
    result = [line.encode() for line in lines]
    ordered = sorted(edits, key=lambda edit: edit[0])  # those of one place stay in their order
    if any(before[1] > after[0] for before, after in zip(ordered, ordered[1:])):
        return None
    for (a, i), (b, k), text in reversed(ordered):
        result[a - 1:b] = [result[a - 1][:i] + text.encode() + result[b - 1][k:]]
    after = b"".join(result).decode()
    try:
        ast.parse(after)
    except (SyntaxError, ValueError):
        return None
    return after.splitlines(True)


def add_edit(edit):
    """Adds it to the edits of this process and reports the diff of all. False: it does not go along with another one."""
    import difflib
    name, parts = edit
    before = _edits.get(name, [])
    if all(part in before for part in parts):
        return True
    if _applied(source_of(name)[0], before + parts) is None:
        return False
    _edits[name] = before + parts
    text = ""
    for path, edits in sorted(_edits.items()):
        short = os.path.relpath(path, HERE)
        for line in difflib.unified_diff(_files[path][0], _applied(_files[path][0], edits), "a/" + short, "b/" + short):
            text += line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"
    write("patch", text)
    return True


def _last_name(node):
    """That of an expression: "AdamW" of torch.optim.AdamW."""
    return getattr(node, "attr", getattr(node, "id", ""))


def edit_argument(where, function, option, text, given, instead_of=()):
    """Gives `option=text` to the call of `function` in this line, in the place of those of `instead_of`. `given`: whether
    the call gets the option already; then it has to stand there by its name. None where the line has no such call, or
    several."""
    found = source_of(where[0])
    if found is None:
        return None
    calls = [call for call in _calls_of(function, found[1]) if call.lineno <= where[1] <= call.end_lineno]
    return _edit_of_calls(where[0], found[0], calls, option, text, given, instead_of)


def _calls_of(function, tree):
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _last_name(node.func) == function]


def _edit_of_calls(name, lines, calls, option, text, given=False, instead_of=()):
    edits = _edits_of_call(lines, calls[0], option, text, given, instead_of) if len(calls) == 1 else []
    return (name, edits) if edits else None


def _edits_of_call(lines, call, option, text, given, instead_of):
    """A list of one edit."""
    new = "{}={}".format(option, text)
    there = [keyword for keyword in call.keywords if keyword.arg == option or keyword.arg in instead_of]
    if len(there) > 1 or (given and not there):
        return []
    if there:
        value = there[0].value
        return [((there[0].lineno, there[0].col_offset), (value.end_lineno, value.end_col_offset), new)]
    parts = list(call.args) + [keyword.value for keyword in call.keywords]
    if not parts:
        end = (call.end_lineno, call.end_col_offset - 1)
        return [(end, end, new)]
    last = max(parts, key=lambda node: (node.end_lineno, node.end_col_offset))
    end = (last.end_lineno, last.end_col_offset)
    rest = lines[end[0] - 1].encode()[end[1]:].lstrip()[:1]
    if isinstance(last, ast.GeneratorExp) or rest not in (b")", b",", b""):
        return []
    return [(end, end, ", " + new)]


def edit_option(function, option, text):
    """Gives `option=text` to the one call of `function` in the program's own file that is running, for frameworks that
    make by themselves what a change is about. None where there is no such call, or where there are several."""
    for name in {name: None for name, _ in own_places() if source_of(name) is not None}:
        lines, tree = source_of(name)
        calls = _calls_of(function, tree)
        if calls:
            return _edit_of_calls(name, lines, calls, option, text)
    return None


def edit_flags(assignments):
    """Adds these assignments ("torch.backends.cudnn.benchmark = True") behind the imports at the top of the program's file
    that is running; where the file assigns one of them itself, at the beginning of the function that is running, or in
    front of the statement that is."""
    name, line = own_places()[0]
    found = source_of(name)
    if found is None:
        return None
    lines, tree = found
    end = "\r\n" if lines[0].endswith("\r\n") else "\n"
    if any(_assigns(node, assignment.split(" ")[0].split(".")[-2:]) for node in ast.walk(tree) for assignment in assignments):
        functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and
                     node.lineno <= line <= node.end_lineno]
        if functions:
            body = functions[-1].body  # of the innermost one
            if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
                body = body[1:]
        else:
            body = [node for node in tree.body if node.lineno <= line <= node.end_lineno]
        indent = lines[body[0].lineno - 1].encode()[:body[0].col_offset].decode() if body else "no place"
        place = (body[0].lineno, 0) if body else None
        return None if indent.strip() else (name, [(place, place, "".join(indent + one + end for one in assignments))])
    imports = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom)) and node.lineno < line]
    if not imports:
        return None
    named = any(one.asname is None and one.name.split(".")[0] == "torch"
                for node in imports if isinstance(node, ast.Import) for one in node.names)
    place = (imports[-1].end_lineno, len(lines[imports[-1].end_lineno - 1].encode()))
    text = ("" if named else "import torch" + end) + end + "".join(one + end for one in assignments)
    return (name, [(place, place, text)])


def _assigns(node, names):
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return any(isinstance(target, ast.Attribute) and [_last_name(target.value), target.attr] == names for target in targets)


def _blocks(tree):
    for node in ast.walk(tree):
        for body in (getattr(node, "body", None), getattr(node, "orelse", None), getattr(node, "finalbody", None)):
            if isinstance(body, list):
                yield node, body


def edit_with(name, first, last, header, whole=False):
    """Puts the statements from that of line `first` up to the one before that of line `last` below `with header:`, in the
    innermost block that has both. last None: the statement of `first` alone, or with `whole` all that follow it in its
    block; a `with` of another autocast then becomes this one."""
    found = source_of(name)
    if found is None:
        return None
    lines, tree = found
    owner, block = None, None
    for node, body in _blocks(tree):  # the innermost one is the last
        spans = lambda line: [k for k, part in enumerate(body) if part.lineno <= line <= part.end_lineno]
        begin, end = spans(first), spans(last) if last is not None else []
        if begin and (last is None or (end and begin[0] < end[0])):
            owner, block = node, body[begin[0]:end[0] if last is not None else len(body) if whole else begin[0] + 1]
    if whole and block is not None and isinstance(owner, ast.With) and len(block) == len(owner.body):
        item = owner.items[0].context_expr
        if len(owner.items) == 1 and isinstance(item, ast.Call) and _last_name(item.func) == "autocast":
            return (name, [((item.lineno, item.col_offset), (item.end_lineno, item.end_col_offset), header)])
    while block and "zero_grad" in ast.dump(block[-1]):
        block = block[:-1]
    if not block or any(isinstance(part, (ast.Constant, ast.JoinedStr)) and part.lineno != part.end_lineno
                        for statement in block for part in ast.walk(statement)):
        return None
    indent = lines[block[0].lineno - 1].encode()[:block[0].col_offset].decode()
    if indent.strip() or (isinstance(block[0], ast.Return) and last is not None):
        return None
    end = "\r\n" if lines[0].endswith("\r\n") else "\n"
    edits = [((block[0].lineno, 0), (block[0].lineno, 0), indent + "with " + header + ":" + end)]
    deeper = "\t" if indent.endswith("\t") else "    "
    edits += [((line, 0), (line, 0), deeper) for line in range(block[0].lineno, block[-1].end_lineno + 1)
              if lines[line - 1].strip()]
    return (name, edits)


def edit_autocast(call, nested, header, backward=None):
    """Puts what ran between two stacks, that of the model's call and that of the backward pass, below `with header:`; or
    gives a framework's trainer the option that does it. backward None: the model's call alone. nested: the call is in
    another autocast, so that only what lies inside of that one counts."""
    if header is None:
        return None
    for package, function, option, value in (("lightning", "Trainer", "precision", '"bf16-mixed"'),
                                             ("pytorch_lightning", "Trainer", "precision", '"bf16-mixed"'),
                                             ("transformers", "TrainingArguments", "bf16", "True")):
        if in_framework(package):
            return edit_option(function, option, value)
    own_file, line = own_places()[0]
    if backward is None:
        return edit_with(own_file, line, None, header, whole=False)
    if nested:
        places = [(os.path.abspath(name), line) for _, name, line in call if not name.startswith("<")]
        own_file, line = ([place for place in places if own(place[0])] or [("", 0)])[-1]
        return edit_with(own_file, line, None, header, whole=True)
    return edit_with(*shared_place(call, backward), header)


def shared_place(before, after):
    """The innermost frame that two stacks share: its file, and its line in each of them."""
    shared = ("", 0, 0)
    for one, other in zip(before, after):
        if one[:2] != other[:2]:
            break
        shared = (one[1] if one[1].startswith("<") else os.path.abspath(one[1]), one[2], other[2])
        if one[2] != other[2]:
            break
    return shared


def in_framework(*names):
    """Whether it is one of these packages that calls the program here."""
    return any(os.sep + name + os.sep in file for _, file, _ in stack() for name in names)
