"""Makes recorded_kernels.csv.gz, the kernels of recorded training steps, from traces of a GPU with counters.

    make_recorded_kernels.py NAME=TRACE.rfx... > recorded_kernels.csv.gz
"kernel,NUMBER,NAME" is a kernel's name without parameters; a line of a program is
"NAME,phase,layer,kernel,gx,gy,gz,block,launches,ns,dram_bytes,l2_bytes" and its FLOP as "counter=value": launches a step,
and means of a launch. The lines of a program are in the order of a step, as far as a trace knows it.
"""
import gzip
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import rfx_trace  # noqa: E402

PHASES = ("forward", "backward", "optimizer", "other")
LONGEST = 80  # of a name


def short(name):
    """`name` without its parameters, whose parentheses are the last that are not of a namespace."""
    name = re.sub(r"^void ", "", name)
    depth = 0
    for i, letter in enumerate(name):
        depth += (letter == "<") - (letter == ">")
        if letter == "(" and depth == 0 and not name.startswith("(anonymous", i):
            name = name[:i]
            break
    return name[:LONGEST].replace(",", ";")


def rows(trace):
    numbers = {metric["name"]: number for number, metric in trace.metrics.items()}

    def mean(key, name):
        total = trace.sums.get((key, numbers.get(name, 0)), {})
        return round(total["sum"] / total["n"]) if total.get("n") else 0

    for number, key in trace.keys.items():
        launches = round(trace.launches.get(number, 0) / (len(trace.steps) - 1))
        phase = rfx_trace.PHASES[key.get("phase", 0)]
        if launches == 0 or not mean(number, "rf.time") or (number, numbers["rf.dram_bytes"]) not in trace.sums:
            continue  # copies, and what ran in the first steps alone
        flop = [f"{name[len('rf.flop.'):]}={mean(number, name)}" for name in sorted(numbers)
                if name.startswith("rf.flop.") and mean(number, name)]
        order = PHASES.index(phase) if phase in PHASES else len(PHASES)
        layer = key.get("layer", 0)
        yield (order, -layer if phase == "backward" else layer, number), (phase, layer, trace.names[key["kernel"]]), (
            *key["grid"], key["block"][0], launches, mean(number, "rf.time"), mean(number, "rf.dram_bytes"),
            mean(number, "lts__t_bytes.sum"), *flop)


kernels, lines = {}, []
for word in sys.argv[1:]:
    program, path = word.split("=")
    for _, (phase, layer, kernel), numbers in sorted(rows(rfx_trace.read_trace(path))):
        number = kernels.setdefault(short(kernel), len(kernels))
        lines.append(",".join(map(str, (program, phase, layer, number, *numbers))))
names = [f"kernel,{number},{name}" for name, number in kernels.items()]
sys.stdout.buffer.write(gzip.compress(("\n".join(names + lines) + "\n").encode(), 9, mtime=0))
