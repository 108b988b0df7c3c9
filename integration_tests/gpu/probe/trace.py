"""What the blocks ask of a trace."""
import statistics

import rfx_trace


def kept(chunks, name):
    """All records of one kind, such as sampled_window."""
    return [record for chunk in chunks for record in chunk.get(name, [])]


def said(trace):
    bad = ["%s: %s" % (d.get("id"), d.get("text")) for d in trace.diagnostics if d.get("severity", 0) >= 1]
    return "; ".join(bad) or "nothing was amiss"


def model_keys(trace, model):
    return [number for number, key in trace.keys.items()
            if trace.model_name(trace.layers.get(key.get("layer", 0), {})) == model]


def samples_of(trace, keys, prefix):
    """For each key that has a metric of that name, the number of its samples."""
    metrics = [number for number, metric in trace.metrics.items() if metric["name"].startswith(prefix)]
    found = [max((trace.sums[key, metric]["n"] for metric in metrics if (key, metric) in trace.sums), default=0)
             for key in keys]
    return [n for n in found if n > 0]


def layer_means(trace, model, prefix):
    """{(layer, phase): sum over its kernels of mean times launches a step} of a metric."""
    metrics = [number for number, metric in trace.metrics.items() if metric["name"].startswith(prefix)]
    found = {}
    for key in model_keys(trace, model):
        place = (trace.layers[trace.keys[key]["layer"]].get("path", ""), rfx_trace.PHASES[trace.keys[key].get("phase", 0)])
        for metric in metrics:
            total = trace.sums.get((key, metric))
            if total and total["n"]:
                found[place] = found.get(place, 0) + total["sum"] / total["n"] * trace.launches.get(key, 0)
    return found


def lost_seconds(steps_ms):
    """What the steps took beyond their number times their median, without the first, which imports and compiles."""
    body = steps_ms[1:]
    return (sum(body) - len(body) * statistics.median(body)) / 1e3
