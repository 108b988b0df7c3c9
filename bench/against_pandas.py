"""An import beside pandas over the same file, for benchmarks: what both take, and that both made the same table."""
import fcntl
import json
import os
import pathlib
import re
import subprocess
import sys

from measured_child import measure

PINS = ("numpy==1.26.4", "pandas==2.2.3")


def pandas_interpreter():
    """An interpreter with the pinned pandas; installed once, from PyPI, into ${XDG_CACHE_HOME:-~/.cache}/rfinject."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "rfinject"
    version = "py%d.%d" % sys.version_info[:2]
    venv = cache / f"pandas-{PINS[1].partition('==')[2]}-{version}"
    cache.mkdir(parents=True, exist_ok=True)
    python = venv / "bin" / "python"
    with open(f"{venv}.lock", "w") as lock:  # two runs at once must not install into one folder
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (venv / "complete").exists():
            for command in ([sys.executable, "-m", "venv", "--clear", venv],
                            [python, "-m", "pip", "install", "-q", "--only-binary=:all:", "--disable-pip-version-check",
                             *PINS]):
                if subprocess.run(command, stdout=sys.stderr).returncode != 0:
                    sys.exit(f"{PINS[1]} could not be installed into {venv}")
            (venv / "complete").touch()
    return python


def triple(text):
    return tuple(int(number) for number in re.findall(r"\d+", text))


def sums_of_trace(tool, trace):
    """{(kernel, grid, block, metric): sum} of a trace, from the text of its records."""
    names, metrics, keys, sums = {}, {}, {}, {}
    text = subprocess.run([tool, "dump", trace], check=True, capture_output=True, text=True).stdout
    for line in text.splitlines():
        record = line.partition(" ")[2].strip()
        if found := re.match(r'metric \{ id: (\d+) name: "([^"]*)"', record):
            metrics[found[1]] = found[2]
        elif found := re.match(r'name \{ id: (\d+) text: "([^"]*)"', record):
            names[found[1]] = found[2]
        elif found := re.match(r"key \{ id: (\d+) kernel: (\d+) .*?grid: \[([^]]*)\] block: \[([^]]*)\]", record):
            keys[found[1]] = (names[found[2]], triple(found[3]), triple(found[4]))
        elif found := re.match(r"stats \{ key: (\d+) ", record):
            for metric, total in re.findall(r"metric \{ metric: (\d+) n: \d+(?: sum: (\d+))?", record):
                key = (*keys[found[1]], metrics[metric])
                sums[key] = sums.get(key, 0) + int(total or 0)
    return sums


def compare(tool, kind, script, path, rows, runs):
    """`rfinject import KIND` beside a script of pandas, over a file of `rows` rows; prints the lines of one size.

    The script is given the file and where its answer goes: {"seconds": of CPU, without the start of Python and the
    import of pandas, "sums": [[kernel, grid, block, metric, sum], ...]}, which must be rfinject's sums.
    Gives (pandas' seconds over rfinject's, rfinject's peak of resident memory in bytes)."""
    python = pandas_interpreter()
    trace, answer, program = path.parent / "bench.rfx", path.parent / "pandas.json", path.parent / "with_pandas.py"
    program.write_text(script)
    commands = {"rfinject": [tool, "import", kind, path, "--gpu", "A100-SXM4-40GB", "-o", trace],
                "pandas": [python, program, path, answer]}
    best, peaks, whole = {}, {}, {}
    for _ in range(runs):  # alternately, so that what else runs on the machine hits both
        for which, command in commands.items():
            _, cpu, peak = measure([str(word) for word in command])
            whole[which] = min(whole.get(which, cpu), cpu)
            if which == "pandas":
                cpu = json.loads(answer.read_text())["seconds"]
            best[which] = min(best.get(which, cpu), cpu)
            peaks[which] = max(peaks.get(which, 0), peak)
    ours = sums_of_trace(tool, trace)
    theirs = {(kernel, triple(grid), triple(block), metric): round(value)
              for kernel, grid, block, metric, value in json.loads(answer.read_text())["sums"]}
    if ours != theirs:
        wrong = [key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key)]
        sys.exit(f"the tables differ in {len(wrong)} of {len(ours)} sums, e.g. {wrong[0]}: "
                 f"{ours.get(wrong[0])}, {theirs.get(wrong[0])}")
    size = path.stat().st_size
    for which, seconds in best.items():
        print(f"{rows:>9,} {size / 1e6:>5.0f} MB  {which:<9} {seconds:>7.3f} s of CPU {rows / seconds:>12,.0f} rows/s "
              f"{peaks[which] / 1e6:>7.1f} MB resident")
    print(f"{'':>9} {'':>8}  equal in {len(ours):,} sums; rfinject has {best['pandas'] / best['rfinject']:.1f} times "
          f"pandas' rate, {whole['pandas'] / whole['rfinject']:.1f} times with the start of Python", flush=True)
    return best["pandas"] / best["rfinject"], peaks["rfinject"]
