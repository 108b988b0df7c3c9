"""Questions about the legacy profiler."""

from probe.question import NO, YES, Answer, NotAnswered, probe
from probe.run import last_line
from probe.traces import armed_steps, bad_diagnostics, collector, flop_of, forward_keys


def train_legacy(p, **environment):
    environment = {"RFINJECT_OVERHEAD": "20", "RFINJECT_MODE": "legacy", **environment}
    if p.options.simulated:
        environment["SIM_CUPTI"] = "cupti124/libcupti.so.12"
    code, text, log, trace = p.once("legacy %s" % sorted(environment.items()),
                                    lambda: p.measured("train", environment=environment))
    if trace is None:
        raise NotAnswered("no trace (exit code %s): %s" % (code, last_line(text)))
    same = [a["loss"] for a in log] == [b["loss"] for b in p.train_plain()[2]]
    seen = "exit code %s, collector %s, %d armed steps, drops: %s, losses equal: %s; %s" % (
        code, collector(trace), len(armed_steps(trace)), trace.drops or "none", same,
        "; ".join(bad_diagnostics(trace)) or "no diagnostics")
    good = code == 0 and same and armed_steps(trace) and collector(trace) == "legacy-profiler"
    return Answer(YES if good and not bad_diagnostics(trace) else NO, seen)


@probe(51)
def legacy(p):
    return train_legacy(p)


@probe(52)
def legacy_order(p):
    return train_legacy(p)


@probe(53)
def legacy_flop(p):
    """Against the matrix's own FLOP; the range profiler's are question 8."""
    environment = {"RFINJECT_OVERHEAD": "20", "RFINJECT_MODE": "legacy"}
    if p.options.simulated:
        environment["SIM_CUPTI"] = "cupti124/libcupti.so.12"
    _, text, _, trace = p.measured("gemm", "--dtype", "tf32", steps=60 if p.options.simulated else 150,
                                   environment=environment)
    ratios = []
    for number, layer in (trace.layers.items() if trace else ()):
        values = [flop_of(trace, key) for key in forward_keys(trace, number)]
        values = [value for value in values if value is not None]
        if layer.get("class_name") == "Linear" and layer.get("parameters") and values:
            ratios.append(sum(values) / (2 * p.size * layer["parameters"]))
    if not ratios:
        return Answer(NO, "no FLOP: %s" % ("; ".join(bad_diagnostics(trace)) if trace else last_line(text)))
    return Answer(YES if 0.99 <= ratios[0] <= 1.02 else NO, "%s: executed / model FLOP in tf32 %.4f" % (
        collector(trace), ratios[0]))


@probe(55)
def legacy_ranges(p):
    return train_legacy(p, WORLD_SIZE="2")
