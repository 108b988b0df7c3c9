"""Questions about PM sampling."""
import statistics

from probe.question import NO, YES, Answer, NotAnswered, probe
from probe.run import last_line
from probe.traces import armed_steps, bad_diagnostics, mean_of, unarmed_median


@probe(32)
def pm_sampling(p):
    """The bytes of whole steps by PM sampling against the kernels' sums and against what must be moved."""
    size = 4096 if p.options.simulated else 1 << 28
    _, text, log, trace = p.measured("stream", environment={"RFINJECT_OVERHEAD": "50"}, size=size, steps=60)
    if trace is None:
        raise NotAnswered("no trace: %s" % last_line(text))
    remarks = [d.get("text", "") for d in trace.diagnostics if d.get("id") == "pm-sampling"]
    remarks += ["%s: %d" % pair for pair in trace.drops.items() if "PM sampling" in pair[0]]
    if not trace.pm_windows:
        return Answer(NO, "no window; %s" % ("; ".join(remarks) or "nothing was said"))
    seen = [w.get("dram_read_bytes", 0) + w.get("dram_write_bytes", 0) for w in trace.pm_windows]
    kernels = 0.0
    for key, launches in trace.launches.items():
        value = mean_of(trace, key, "rf.dram_bytes")
        kernels += (value or 0) * launches / max(1, len(trace.steps) - 1)
    pm = statistics.median(seen)
    window = trace.pm_windows[0]
    spread = "%d samples of %.0f us" % (window["samples"], window["duration_ns"] / window["samples"] / 1e3)
    sampled = {w.get("step") for w in trace.pm_windows}
    slow = [s["duration_ns"] for s in trace.steps if s.get("index", 0) in sampled]
    text = "%d windows (%s), %.4g bytes a step; kernels' sum %.4g, ratio %.4f; a sampled step takes %.2f times an " \
        "unsampled one" % (
        len(seen), spread, pm, kernels, pm / kernels if kernels else 0, statistics.median(slow) / unarmed_median(trace))
    if remarks:
        text += "; " + "; ".join(remarks)
    return Answer(YES if kernels and 0.95 <= pm / kernels <= 1.10 else NO, text)


@probe(33)
def pm_beside_counters(p):
    """Does PM sampling leave the range profiler, and the losses, as they are without it?"""
    code, _, log, trace = p.once("train range", lambda: p.measured(
        "train", environment={"RFINJECT_OVERHEAD": "5", "RFINJECT_MODE": "range"}))
    both_code, _, both_log, both = p.train_measured()
    if trace is None:
        raise NotAnswered("no trace with RFINJECT_MODE=range (exit code %s)" % code)
    late = [s for s in armed_steps(both) if both.pm_windows and s["index"] > both.pm_windows[0].get("step", 0)]
    same = [a["loss"] for a in log] == [b["loss"] for b in both_log]
    seen = "exit codes %s without and %s with it; armed steps %d and %d, of these %d after the first window; %d " \
        "windows; losses equal: %s; with it: %s" % (code, both_code, len(armed_steps(trace)), len(armed_steps(both)),
                                                    len(late),
                                                    len(both.pm_windows), same,
                                                    "; ".join(bad_diagnostics(both)) or "no diagnostics")
    good = code == both_code == 0 and same and both.pm_windows and not bad_diagnostics(both)
    return Answer(YES if good else NO, seen)
