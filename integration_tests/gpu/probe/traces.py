"""What the probes ask of a trace."""
import statistics

import rfx_trace
from probe.question import NotAnswered


def collector(trace):
    return trace.run.get("collector", "none")


def bad_diagnostics(trace):
    return ["%s: %s" % (d.get("id"), d.get("text")) for d in trace.diagnostics if d.get("severity", 0) >= 1]


def mean_of(trace, key, metric_name):
    """Mean of a metric over the samples of a launch key; None when there is none."""
    for number, metric in trace.metrics.items():
        if metric["name"] == metric_name:
            total = trace.sums.get((key, number))
            return total["sum"] / total["n"] if total and total["n"] else None
    return None


def flop_of(trace, key, precisions=None):
    names = [metric["name"] for metric in trace.metrics.values() if metric["name"].startswith("rf.flop.")]
    values = [mean_of(trace, key, name) for name in names if precisions is None or name[8:] in precisions]
    values = [value for value in values if value is not None]
    return sum(values) if values else None


def forward_keys(trace, layer):
    return [number for number, key in trace.keys.items()
            if key.get("layer") == layer and rfx_trace.PHASES[key.get("phase", 0)] == "forward"]


def armed_steps(trace):
    return [step for step in trace.steps if step.get("armed_group", 0) > 0]


def unarmed_median(trace):
    quiet = [step["duration_ns"] for step in trace.steps[5:] if step.get("armed_group", 0) == 0]
    if not quiet:
        raise NotAnswered("no unarmed step")
    return statistics.median(quiet)


def launches_per_step(trace):
    return sum(trace.launches.values()) / max(1, len(trace.steps) - 1)


def layer_totals(trace, prefix):
    """Sums over keys by layer path and phase of the metrics that begin with `prefix`, scaled to all launches."""
    names = {number: metric["name"] for number, metric in trace.metrics.items()}
    totals = {}
    for (key, metric), total in trace.sums.items():
        if not names[metric].startswith(prefix) or total["n"] == 0:
            continue
        identity = trace.keys[key]
        where = (trace.layers.get(identity.get("layer", 0), {}).get("path"), identity.get("phase", 0))
        totals[where] = totals.get(where, 0) + total["sum"] / total["n"] * trace.launches[key]
    return totals
