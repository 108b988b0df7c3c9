"""Questions about what armed steps cost: time, clocks, memory of the device."""
import statistics

from probe.question import NO, SEEN, YES, Answer, NotAnswered, probe
from probe.traces import armed_steps, launches_per_step, unarmed_median


@probe(4)
def armed_cost(p):
    trace = p.train_armed()[3] or p.train_measured()[3]
    armed = armed_steps(trace)
    if not armed:
        raise NotAnswered("no armed step")
    base, per_step = unarmed_median(trace), launches_per_step(trace)
    cost = statistics.median(step["duration_ns"] for step in armed) - base
    return Answer(SEEN, "unarmed step %.3f ms with %.0f launches; an armed one %.3f ms more: %.1f us a launch" % (
        base / 1e6, per_step, cost / 1e6, cost / 1e3 / max(1, per_step)))


@probe(5)
def group_cost(p):
    trace = p.train_armed()[3] or p.train_measured()[3]
    base, per_step = unarmed_median(trace), max(1, launches_per_step(trace))
    groups = {}
    for step in armed_steps(trace):
        groups.setdefault(step["armed_group"], []).append(step["duration_ns"] - base)
    if not groups:
        raise NotAnswered("no armed step")
    costs = {group: statistics.median(values) / 1e3 / per_step for group, values in sorted(groups.items())}
    return Answer(SEEN, "us a launch by group (hardware, then SASS, then the guard): " + ", ".join(
        "%d: %.1f (%d steps)" % (group, cost, len(groups[group])) for group, cost in costs.items()))


@probe(10)
def clock_lock(p):
    trace, clocks = p.train_armed()[3:5]
    if trace is None or not clocks:
        raise NotAnswered("no trace, or nvidia-smi printed no clocks")
    armed = armed_steps(trace)
    if not armed:
        raise NotAnswered("no armed step")
    began, ended = min(s["start_unix_ns"] for s in armed) / 1e9, max(s["start_unix_ns"] for s in armed) / 1e9
    parts = {"before": [c for t, c in clocks if t < began],
             "with counters": [c for t, c in clocks if began <= t <= ended],
             "after": [c for t, c in clocks if t > ended + 0.2]}
    text = "; ".join("%s: %s" % (name, "%d to %d MHz, median %d" % (min(values), max(values), statistics.median(values))
                                if values else "no reading") for name, values in parts.items())
    return Answer(SEEN, "SM clock " + text)


@probe(11)
def leak(p):
    log, trace = p.train_armed()[2:4]
    free = [record["free"] for record in log if "free" in record]
    armed = len(armed_steps(trace)) if trace else 0
    if len(free) < 40:
        raise NotAnswered("the workload reported no free memory")
    early, late = free[len(free) // 3], free[-1]
    return Answer(YES if abs(early - late) < 4 << 20 else NO,
                  "%d armed steps; free memory changed by %+.1f MiB over the last two thirds of the run, by %+.1f MiB "
                  "over all of it" % (armed, (late - early) / 2**20, (late - free[0]) / 2**20))
