"""Questions about counting layer by layer."""
import statistics

from probe.question import NO, SEEN, YES, Answer, NotAnswered, probe
from probe.run import last_line
from probe.traces import armed_steps, bad_diagnostics, layer_totals, unarmed_median


def both_modes(p):
    def run():
        traces = []
        for mode in ("range", "user"):
            code, text, _, trace = p.measured("train", steps=120, environment={"RFINJECT_MODE": mode,
                                                                               "RFINJECT_OVERHEAD": "50"})
            if code != 0 or trace is None:
                raise NotAnswered("exit code %s with RFINJECT_MODE=%s: %s" % (code, mode, last_line(text)))
            traces.append(trace)
        return traces
    return p.once("modes", run)


@probe(41)
def layer_ranges(p):
    kernels, layers = both_modes(p)
    seen, good = [], True
    for prefix, limit in (("rf.flop.", 1e-6), ("rf.dram_bytes", 0.05)):
        one, other = layer_totals(kernels, prefix), layer_totals(layers, prefix)
        if not one or not other:
            return Answer(NO, "no %s kernel by kernel (%d) or layer by layer (%d); %s" % (
                prefix, len(one), len(other), "; ".join(bad_diagnostics(layers))))
        # Only launches that both have are compared: one more or less at the end of a step does not matter here.
        worst = max((abs(one[at] - other[at]) / max(one[at], other[at], 1), at) for at in one.keys() & other.keys())
        sums = sum(one.values()), sum(other.values())
        seen.append("%s: %.6g kernel by kernel, %.6g layer by layer, most different %s by %.2g %%" % (
            prefix.strip("."), *sums, worst[1], 100 * worst[0]))
        good = good and worst[0] <= limit
    return Answer(YES if good else NO, "; ".join(seen))


@probe(42)
def range_cost(p):
    kernels, layers = both_modes(p)
    seen = []
    for name, trace in (("kernel by kernel", kernels), ("layer by layer", layers)):
        armed = [step["duration_ns"] for step in armed_steps(trace)]
        if not armed:
            return Answer(NO, "no armed step %s; %s" % (name, "; ".join(bad_diagnostics(trace))))
        extra = statistics.median(armed) - unarmed_median(trace)
        seen.append("%s: an armed step takes %.3g ms more" % (name, extra / 1e6))
    return Answer(SEEN, "; ".join(seen))


@probe(34)
def layer_ranges_start(p):
    """The same as question 2, with ranges at layers instead of kernels, which run on without being waited for."""
    code, _, log, trace = p.measured("train", environment={"RFINJECT_OVERHEAD": "20", "RFINJECT_MODE": "user"})
    if trace is None:
        raise NotAnswered("no trace (exit code %s)" % code)
    armed = armed_steps(trace)
    if not armed:
        return Answer(NO, "no armed step; %s" % ("; ".join(bad_diagnostics(trace)) or "no diagnostics"))
    extra = statistics.median(step["duration_ns"] for step in armed) - unarmed_median(trace)
    plain = p.train_plain()[2]
    same = [a["loss"] for a in log] == [b["loss"] for b in plain]
    seen = "exit code %s, %d armed steps, %.3f ms more than an unarmed one, drops: %s, losses equal: %s; %s" % (
        code, len(armed), extra / 1e6, trace.drops or "none", same,
        "; ".join(bad_diagnostics(trace)) or "no diagnostics")
    bad = [text for text in bad_diagnostics(trace) if "not measured" in text]
    return Answer(YES if code == 0 and same and not bad else NO, seen)
