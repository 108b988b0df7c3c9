"""Questions that only one GPU, or one version of CUPTI, can answer."""
import re

from probe.question import NO, YES, Answer, NotAnswered, probe
from probe.run import last_line
from probe.traces import bad_diagnostics, collector
from probe.values import dram


def needs_capability(p, wanted, what):
    _, _, _, trace = p.train_measured()
    devices = trace.run.get("device", [{}])
    have = (devices[0].get("cc_major", 0), devices[0].get("cc_minor", 0))
    if have not in wanted:
        raise NotAnswered("this is %s, not %s" % (devices[0].get("name", "?"), what))
    return trace


@probe(17)
def volta(p):
    needs_capability(p, [(7, 0)], "a V100")
    # Left to itself, the source takes the legacy profiler there.
    code, text, _, trace = p.measured("train", environment={"RFINJECT_MODE": "range", "RFINJECT_OVERHEAD": "5"})
    if trace is None:
        raise NotAnswered("no trace was written (exit code %s): %s" % (code, last_line(text)))
    return Answer(YES if collector(trace) == "range-profiler" else NO, "CUPTI %s, collector %s; %s" % (
        trace.process.get("cupti_version"), collector(trace), "; ".join(bad_diagnostics(trace)) or "no diagnostics"))


@probe(18)
def cupti_132(p):
    code, text, _, trace = p.train_measured()
    version = trace.process.get("cupti_version", "?")
    if not re.match(r"13\.([2-9]|\d\d)|1[4-9]", version):
        raise NotAnswered("this torch has CUPTI %s" % version)
    return Answer(YES if code == 0 else NO, "CUPTI %s, exit code %s: %s" % (version, code, last_line(text)))


@probe(20)
def gb202(p):
    needs_capability(p, [(12, 0)], "an RTX 50")
    return dram(p)
