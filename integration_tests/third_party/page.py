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


def write(path: pathlib.Path, torch, gpu, python, rows, order):
    """Writes the page, or what changes of it. `order` has the names of all programs."""
    parts = {}
    if path.exists():
        for text in re.split(r"^(?=## torch )", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            parts[text.split()[2]] = text.rstrip() + "\n"
    parts[torch] = part(torch, python, rows, parts.get(torch, ""), order)
    newest_first = sorted(parts, key=lambda version: [int(number) for number in version.split(".")], reverse=True)
    path.write_text("\n".join([HEAD.format(gpu=gpu), *(parts[version] for version in newest_first)]), encoding="utf-8")
