"""What two runs are compared by, operator by operator, from the report that rfinject makes of their traces."""
import csv
import io
import re
import subprocess

# What of an operator's row must be the same: where it ran, how often, and on how much.
SAME = ("phase", "op", "launches", "time_ns", "model_flop", "flop", "dram_bytes", "kernel_launches", "kernels")


def rows_of(text):
    """Those of the CSV of `rfinject report --by op --raw`, training and validation, in an order of their own."""
    return sorted(tuple((name, row.get(name)) for name in SAME) for row in csv.DictReader(io.StringIO(text)) if row.get("op"))


def operators(rfinject, folder, **options):
    """The rows of the runs in a folder. Raises where there is no report of it."""
    words = [rfinject, "report", folder, "--by", "op", "--format", "csv", "--raw"]
    return rows_of(subprocess.run(words, capture_output=True, text=True, check=True, **options).stdout)


def of_any_engine(rows):
    """The rows with one name for all engines of a kind of cuDNN's."""
    def kernels(text):
        sums = {}
        for part in text.split(", ") if text else []:
            name, count = part.rsplit(" ", 1)
            name = re.sub(r"_engine\d+$", "", name)
            sums[name] = sums.get(name, 0) + int(count)
        return ", ".join(f"{name} {count}" for name, count in sorted(sums.items()))

    return sorted(tuple((name, kernels(value) if name == "kernels" else value) for name, value in row) for row in rows)


def launches(rows):
    """How often each operator ran, and on how many bytes, in whatever phase."""
    sums = {}
    for row in map(dict, rows):
        count, size = sums.get(row["op"], (0, 0))
        sums[row["op"]] = count + int(row["launches"]), size + float(row["dram_bytes"] or 0)
    return sums


def differences(some, others):
    """What the two do not share, a line each, for people."""
    told = [f"{sign} {' '.join(f'{name}={value}' for name, value in row)}"
            for sign, rows in (("-", set(some) - set(others)), ("+", set(others) - set(some))) for row in sorted(rows)]
    return told
