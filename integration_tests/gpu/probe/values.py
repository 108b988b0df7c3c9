"""Questions about values: times, FLOP, DRAM bytes, memory, against what is known or another tool."""
import re
import shutil
import statistics

from probe.question import NO, PARTLY, YES, Answer, NotAnswered, OutOfTime, probe
from probe.run import last_line
from probe.traces import flop_of, forward_keys, mean_of


@probe(7)
def times(p):
    """Against CUDA events around one large multiplication in a run without us, and against nsys where it is."""
    _, _, _, trace = p.gemm("tf32")
    if trace is None:
        raise NotAnswered("no trace of the multiplication")
    best = None
    for number, layer in trace.layers.items():
        values = [mean_of(trace, key, "rf.time") for key in forward_keys(trace, number)]
        total = sum(value for value in values if value is not None)
        if layer.get("class_name") == "Linear" and total:
            best = total
    if best is None:
        raise NotAnswered("the multiplication has no time")
    sizes = {} if p.options.simulated else {"steps": 100}
    _, _, log = p.plain("gemm", "--dtype", "tf32", **sizes)
    events = [record["forward_ns"] for record in log[5:] if "forward_ns" in record]
    nsys = "nsys is here" if shutil.which("nsys", path=p.environment.get("PATH")) else "no nsys here to compare with"
    if not events:
        return Answer(PARTLY, "rf.time of the forward %.1f us; no CUDA events to compare with; %s" % (best / 1e3, nsys))
    ratio = best / statistics.median(events)
    return Answer(YES if 0.95 <= ratio <= 1.02 else NO,
                  "rf.time %.1f us, CUDA events in a plain run %.1f us (they include the gap before the kernel): ratio "
                  "%.3f; %s" % (best / 1e3, statistics.median(events) / 1e3, ratio, nsys))


@probe(8)
def flop(p):
    results, good = [], True
    for dtype in ("tf32", "bf16", "fp16", "fp32"):
        try:
            code, text, _, trace = p.gemm(dtype)
        except OutOfTime:
            results.append("%s: the time was up" % dtype)
            good = False
            continue
        ratios = []
        for number, layer in (trace.layers.items() if trace else ()):
            if layer.get("class_name") != "Linear" or not layer.get("parameters"):
                continue
            values = [flop_of(trace, key) for key in forward_keys(trace, number)]
            values = [value for value in values if value is not None]
            if values:
                ratios.append(sum(values) / (2 * p.size * layer["parameters"]))
        if not ratios:
            results.append("%s: no FLOP (exit code %s: %s)" % (dtype, code, last_line(text)))
            good = False
            continue
        results.append("%s: %.4f" % (dtype, ratios[0]))
        good = good and 0.99 <= ratios[0] <= 1.02
    return Answer(YES if good else NO, "executed / model FLOP of the forward: " + ", ".join(results))


@probe(9)
def dram(p):
    """A multiplication of 2^28 floats moves 4 bytes in and 4 out for each, far beyond any cache; and ncu's number."""
    size = 4096 if p.options.simulated else 1 << 28
    _, text, _, trace = p.measured("stream", environment=dict({"RFINJECT_OVERHEAD": "20"}, **p.counters()),
                                   size=size, steps=60)
    values = []
    for number, layer in (trace.layers.items() if trace else ()):
        if layer.get("class_name") == "Scale":
            values += [mean_of(trace, key, "rf.dram_bytes") for key in forward_keys(trace, number)]
    values = [value for value in values if value is not None]
    if not values:
        raise NotAnswered("no DRAM bytes were measured: %s" % last_line(text))
    ratio = max(values) / (8.0 * size)
    seen = "elementwise kernel: %.4f of 8 bytes a number" % ratio
    verdict = YES if 0.97 <= ratio <= 1.10 else NO
    ncu = shutil.which("ncu", path=p.environment.get("PATH"))
    if ncu is None:
        return Answer(verdict, seen + "; no ncu here to compare with")
    code, text = p.run("ncu", [ncu, "--csv", "--cache-control", "none", "--clock-control", "none", "--launch-count",
                               "200", "--metrics", "dram__bytes_read.sum,dram__bytes_write.sum"]
                       + p.workload("stream", size=size, steps=3), 90)
    sums = {}
    for line in text.splitlines():
        cells = re.findall(r'"([^"]*)"', line)
        if len(cells) >= 5 and cells[-3].startswith("dram__bytes"):
            unit = {"byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9}.get(cells[-2], 1)
            sums[cells[0]] = sums.get(cells[0], 0) + float(cells[-1].replace(",", "")) * unit
    if not sums:
        return Answer(verdict, seen + "; ncu gave nothing (exit code %s: %s)" % (code, last_line(text)))
    ratio = max(values) / max(sums.values())
    return Answer(verdict, seen + "; its bytes / those of ncu's largest kernel: %.4f" % ratio)


@probe(31)
def memory(p):
    """The trace's peak of a step above the memory in use at its end must be torch's own, step by step."""
    _, _, log, trace = p.train_measured()
    steps = {step["index"]: step for step in trace.steps if step.get("memory_peak_bytes")}
    if not steps:
        return Answer(NO, "no step has its memory")
    pairs = []
    for record in log:
        step = steps.get(record["step"])
        if step and "peak_reserved" in record:
            pairs.append((step["memory_peak_bytes"] - step["memory_bytes"],
                          record["peak_reserved"] - record["reserved"]))
    if not pairs:
        raise NotAnswered("the workload reported no memory")
    wrong = [(ours, theirs) for ours, theirs in pairs if ours < theirs - (4 << 20)]
    asking = statistics.median(record["asking_ns"] for record in log) / 1e3
    seen = "%d of %d steps have it; peak above the end of the step: %.1f MiB by the trace, %.1f by torch (largest); " \
        "too small in %d steps; cuMemGetInfo through torch %.1f us" % (
            len(steps), len(trace.steps), max(a for a, _ in pairs) / 2**20, max(b for _, b in pairs) / 2**20,
            len(wrong), asking)
    return Answer(YES if not wrong else NO, seen)
