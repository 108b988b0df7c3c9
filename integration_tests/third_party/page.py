"""The page that says what was seen of programs of third parties: a part for each version of torch."""
import pathlib
import re
import subprocess

HEAD = """# Programs of third parties on the virtual GPU

Written by `scripts/test --third-party`. Each line is a program as its users write it (`programs.txt` has the commands), with
packages of PyPI at the versions of `requirements.txt`, and ran on a virtual GPU of kind {gpu}.

* **steps, samples**: what the report divides by. They are those that the program made; the first is left out where
  FlopCounterMode counted it. `-`: rfinject does not know how many samples a batch has, and says so in the report.
* **layers**: the share of the time of forward and backward that has a layer.
* **FLOP**: rfinject's of products, convolutions and attention's products over those of `torch.utils.flop_counter`, of a step.
  A `=` holds for each of the three. The counter's own formula for the gradient of a grouped convolution's weight counts
  `groups` times too much and is corrected (`programs/counted.py`).
* **peak**: of PyTorch's allocator. A `=` says that `torch.cuda.max_memory_allocated()` was the same.
* **seconds** are those of a machine that did other things, too.
"""

TRIES = """Written by `scripts/test --third-party`, too: what `rfinject try` makes of the six programs of `tried/`, which imitate
those that their names say, on a virtual GPU of kind {gpu}. {whole} of {all} lines on {programs} programs are as `tried.txt`
says.

* **kernels**: *same kernels*: the operators with the change are those of the program that a hand has edited (`edits/`), row
  by row of `rfinject report --by op`: phase, launches, time, FLOP, bytes and kernels. *none changed*: they are those of the
  program without the change, too. *same operators*: each ran as often and on as many bytes. *already made*, *nothing to
  change*: `try` says so, and why.
* **patch**: what `try --diff` prints for the change *applies* with `git apply`, and the program then runs the variant's
  kernels. The line `try --diff` is the patch of the best changes together."""


def versions(python, packages):
    code = "import importlib.metadata as m, sys\nfor p in sys.argv[1:]: print(p, m.version(p))"
    return subprocess.run([python, "-c", code, *packages], capture_output=True, text=True, check=True).stdout.splitlines()


def row(program, seen):
    ratio = seen.flop_ratio()
    flop = "-" if ratio is None else "=" if program.flop and not seen.wrong else f"{ratio:.4f}"
    peak = f"{seen.peak_bytes / 1e6:.0f} MB" + (" =" if seen.peak_said == seen.peak_bytes else "") if seen.peak_bytes else "-"
    result = "not as expected" if seen.wrong else "not whole" if program.excuse else "whole"
    known = "; ".join(filter(None, [*seen.wrong, program.excuse, program.note])).replace("|", "/")
    return (f"| {program.name} | {result} | {seen.steps or '-'} | {seen.samples or '-'} | {100 * seen.layers:.1f} % | {flop} | {peak} "
            f"| {seen.seconds:.0f} | {known} |")


def part(torch, python, rows, before, order):
    """`before` is the page's part for this torch, whose lines of programs that did not run now stay."""
    lines = dict(re.findall(r"^(?=\| (\S+) \| (?:not |whole))(.*)$", before, re.MULTILINE))
    lines |= {program.name: row(program, seen) for program, seen in rows}
    lines = [lines[name] for name in order if name in lines]
    whole = sum("| whole |" in line for line in lines)
    packages = sorted({package for program, _ in rows for package in program.packages} - {"torchvision"})
    said = re.search(r"^Packages: (.*)\.$", before, re.MULTILINE)
    known = {text.split()[0]: text for text in said[1].split(", ")} if said else {}
    known |= {text.split()[0]: text for text in versions(python, ["torch", "torchvision", *packages])}
    return "\n".join([f"## torch {torch}", "", f"{whole} of {len(lines)} programs are whole.", "",
                      "Packages: " + ", ".join(known.values()) + ".", "",
                      "| program | result | steps | samples | layers | FLOP | peak | seconds | to know |",
                      "|---|---|---|---|---|---|---|---|---|", *lines, ""])


def _version(heading):
    return [int(number) for number in re.search(r"torch ([\d.]+)", heading)[1].split(".")]


def _write_part(path: pathlib.Path, heading, gpu, make):
    """Writes the part below that heading, which make(what stands there) returns, and leaves the others as they are."""
    head, parts = HEAD.format(gpu=gpu), {}
    if path.exists():
        before, *texts = re.split(r"^(?=## )", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        head = head if gpu else before.rstrip() + "\n"
        parts = {text.splitlines()[0]: text.rstrip() + "\n" for text in texts}
    parts[heading] = make(parts.get(heading, ""))
    newest_first = sorted(parts, key=lambda heading: (heading.startswith("## torch"), _version(heading)), reverse=True)
    path.write_text("\n".join([head, *(parts[heading] for heading in newest_first)]), encoding="utf-8")


def write(path: pathlib.Path, torch, gpu, python, rows, order):
    """Writes the page, or what changes of it. `order` has the names of all programs."""
    _write_part(path, f"## torch {torch}", gpu, lambda before: part(torch, python, rows, before, order))


def write_tries(path: pathlib.Path, torch, gpu, programs):
    """Writes the part about changes of `rfinject try`, or the lines of these programs in it."""
    heading = f"## `rfinject try`, torch {torch}"

    def make(before):
        lines = {}
        for name, line in re.findall(r"^(?=\| (\S+) \|)(.*)$", before, re.MULTILINE):
            lines.setdefault(name, []).append(line)
        lines = {name: rows for name, rows in lines.items() if name not in ("program", "---")}
        lines |= {program.name: tries_rows(program) for program in programs}
        rows = [line for name in lines for line in lines[name]]
        wrong = sum("NOT" in line for line in rows)
        return "\n".join([heading, "", TRIES.format(gpu=gpu, all=len(rows), programs=len(lines), whole=len(rows) - wrong), "",
                          "| program | change | kernels | patch | to know |", "|---|---|---|---|---|", *rows, ""])

    _write_part(path, heading, "", make)


def tries_rows(program):
    rows = []
    for change in program.changes:
        made = change.kernels not in ("already made", "nothing to change")
        kernels = change.kernels.replace("launches", "same operators", 1).replace("same but", "same kernels but for", 1)
        kernels = "same kernels" if kernels == "same" else kernels.replace("operators but", "operators but for", 1)
        kernels = "NOT as expected" if change.wrong else kernels + (", none changed" if made and change.unchanged else "")
        known = "; ".join(filter(None, [*change.wrong, "" if made else change.said, change.note])).replace("|", "/")
        rows.append(f"| {program.name} | {change.name} | {kernels} | {change.patch if made else '-'} | {known[:400]} |")
    together = "NOT as expected: " + "; ".join(program.wrong)[:200] if program.wrong else "applies" if program.together else "-"
    return rows + [f"| {program.name} | `try --diff` | | {together} | {program.together or 'no change won'} |"]
