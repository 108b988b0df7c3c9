"""What TraceLens makes of a recording beside what rfinject does, row by row (its table of operators by shapes).

A row is an operator with shapes. Where FLOP or bytes differ, the difference must be that of one of the reasons below, to
the digits that TraceLens prints; REASONS has each with the formula that says what TraceLens then has.
"""
import ast
import collections
import csv
import gzip
import math
import re
import typing


class Row(typing.NamedTuple):
    """The sum over all calls of an operator with these shapes."""
    op: str
    shapes: tuple
    calls: int
    flop: float
    moved: float  # bytes
    ns: float


def family(op):
    """aten::native_layer_norm is TraceLens' aten::layer_norm; in-place operators are counted with the others."""
    return op.removeprefix("aten::").lstrip("_").removeprefix("native_").removesuffix("_")


def shapes_in(dims):
    """The tensors' shapes, of lists too; without scalars."""
    if dims and all(isinstance(size, int) for size in dims):
        return (dims,)
    return tuple(shape for one in dims if isinstance(one, tuple) for shape in shapes_in(one))


def add(rows, row):
    key = (row.op, row.shapes)
    if key in rows:
        row = Row(*key, *(a + b for a, b in zip(rows[key][2:], row[2:])))
    rows[key] = row


def read_answers(path):
    """TraceLens' rows, by operator and shapes; a list's shapes are left out, for rfinject's rows do not have them."""
    rows = {}
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            calls = int(row["operation_count"])
            shapes = () if "TensorList" in row["Input type"] else shapes_in(ast.literal_eval(row["Input Dims"]))
            add(rows, Row(family(row["name"]), shapes, calls, 1e9 * float(row["GFLOPS"] or 0) * calls,
                          2**20 * float(row["Data Moved (MB)"] or 0) * calls, 1e3 * float(row["Kernel Time (µs)_sum"] or 0)))
    return rows


def our_rows(kernels):
    """The rows of `report --by kernel --format json`, added up by operator and shapes."""
    rows = {}
    for kernel in kernels:
        if not kernel["op"]:
            continue
        shapes = tuple(tuple(map(int, sizes.split(","))) for sizes in re.findall(r"\[([0-9,]+)\]", kernel["signature"] or ""))
        add(rows, Row(family(kernel["op"]), shapes, kernel["launches"], kernel["model_flop"] or 0,
                      kernel["compulsory_bytes"] or 0, kernel["time_ns"]))
    return rows


def product_flop(row):
    """2 M N K of a matrix product's shapes for each batch and call; None of what is none."""
    if row.op not in ("mm", "addmm", "bmm", "baddbmm"):
        return None
    a, b = row.shapes[-2:]
    return 2 * math.prod(a) * b[-1] * row.calls


def elements(row):
    """Of the first tensor, in all calls."""
    return math.prod(row.shapes[0]) * row.calls if row.shapes else 0


def attention_scores(row):
    query, key = row.shapes[:2]
    return math.prod(query[:-1]) * key[-2] * row.calls


def channels(row):
    return row.shapes[1][0] * row.calls


class Reason(typing.NamedTuple):
    """`theirs` makes (FLOP, bytes) of TraceLens of a row of ours with TraceLens' number of calls."""
    ops: tuple
    ours: str
    tracelens: str
    theirs: typing.Callable


BYTES = 2  # of an element: all of these programs compute in BF16
REASONS = (
    Reason((), "the same", "the same", lambda row: (row.flop, row.moved)),
    Reason(("addmm",), "2 M N K, the products", "adds M N for the bias",
           lambda row: (row.flop + row.shapes[1][0] * row.shapes[2][1] * row.calls, row.moved)),
    Reason(("scaled_dot_product_flash_attention",), "adds 4 for the softmax of each score", "the two products only",
           lambda row: (row.flop - 4 * attention_scores(row), row.moved)),
    Reason(("layer_norm",), "8 FLOP an element; weight, bias, and a mean and a deviation (FP32) of each row are moved",
           "5 an element and 6 a channel; 12 bytes a channel in their place",
           lambda row: (5 * elements(row) + 6 * channels(row), 2 * BYTES * elements(row) + 12 * channels(row))),
    Reason(("convolution",), "reads the bias", "does not",
           lambda row: (row.flop, row.moved - BYTES * row.shapes[2][0] * row.calls)),
    Reason(("mul",), "a number is an argument of the kernel", "reads 8 bytes for it",
           lambda row: (row.flop, row.moved + 8 * row.calls)),
    Reason(("copy",), "no FLOP", "one FLOP an element", lambda row: (elements(row), row.moved)),
    Reason(("copy",), "no FLOP; what goes to or from the host has no bytes of DRAM", "one FLOP an element; both sides' bytes",
           lambda row: (elements(row), 2 * BYTES * elements(row)) if row.moved == 0 else None),
    Reason(("copy",), "no FLOP; what a stride of 0 repeats is read once", "one FLOP an element; it is read again each time",
           lambda row: (elements(row), 2 * BYTES * elements(row)) if row.moved < 2 * BYTES * elements(row) else None),
    Reason(("upsample_nearest1d",), "no FLOP", "one FLOP an element of the result",
           lambda row: (row.moved / BYTES - elements(row), row.moved)),
    Reason(("mean",), "writes what is left of the tensor", "writes one element",
           lambda row: (row.flop, BYTES * (elements(row) + row.calls))),
    Reason(("softmax", "gelu", "tanh", "cat", "index_select", "all", "eq", "local_scalar_dense"),
           "bytes, and FLOP where the table of operators has a rule", "has neither", lambda row: (0, 0)),
)


def near(a, b):
    return abs(a - b) <= 1e-9 * max(abs(a), abs(b))


def reason_of(ours, theirs):
    """Which of REASONS the difference has; None for none of them."""
    row = ours._replace(calls=theirs.calls)  # ours counts kernels, of which an operator may have several
    for index, reason in enumerate(REASONS):
        if not reason.ops or row.op in reason.ops:
            expected = reason.theirs(row)
            if expected is not None and near(expected[0], theirs.flop) and near(expected[1], theirs.moved):
                return index
    return None


def compare(kernels, answers):
    """Prints how many rows differ for which reason, with their share of the operators' time. Returns what has no reason."""
    ours, theirs = our_rows(kernels), read_answers(answers)
    total = sum(row.ns for row in ours.values())
    found = collections.defaultdict(list)
    wrong = []
    for key in sorted(ours.keys() | theirs.keys(), key=str):
        if key not in ours or key not in theirs:
            wrong.append(f"{key[0]} {key[1]}: only in {'rfinject' if key in ours else 'TraceLens'}'s table")
            continue
        if abs(ours[key].ns - theirs[key].ns) > 1e-4 * ours[key].ns + 1:
            wrong.append(f"{key[0]} {key[1]}: {ours[key].ns} ns, TraceLens {theirs[key].ns:.0f}")
        reason = reason_of(ours[key], theirs[key])
        if reason is None:
            wrong.append(f"{key[0]} {key[1]}: {ours[key].flop:.10g} FLOP, TraceLens {theirs[key].flop:.10g}; "
                         f"{ours[key].moved:.10g} bytes, TraceLens {theirs[key].moved:.10g}")
        else:
            found[reason].append(ours[key])
    products = [row._replace(calls=theirs[key].calls) for key, row in ours.items() if key in theirs]
    products = [row for row in products if product_flop(row) is not None]
    closed = sum(row.flop == product_flop(row) for row in products)
    if closed != len(products):
        wrong.append(f"{len(products) - closed} matrix products do not have 2 M N K FLOP")
    for index, rows in sorted(found.items()):
        ops = ", ".join(sorted({row.op for row in rows}))
        share = 100 * sum(row.ns for row in rows) / total
        print(f"    {len(rows):3} rows {share:6.3f} %  {ops}: {REASONS[index].ours}"
              + (f"; TraceLens: {REASONS[index].tracelens}" if index else ""))
    print(f"    {closed} of {len(products)} rows of matrix products have 2 M N K FLOP; {len(wrong)} of "
          f"{len(ours.keys() | theirs.keys())} rows differ for no reason that is known")
    for line in wrong:
        print(f"    not explained: {line}")
    return wrong
