"""Questions about counting kernel by kernel: does it work, is it right about order and correlation, does it replay."""
import re

from probe.question import NO, YES, Answer, NotAnswered, probe
from probe.run import last_line
from probe.traces import armed_steps, bad_diagnostics, collector, flop_of, forward_keys, mean_of


@probe(1)
def works(p):
    code, text, _, trace = p.train_measured()
    bad = bad_diagnostics(trace)
    last = max((step["index"] for step in armed_steps(trace)), default=None)
    seen = "exit code %s, collector %s, CUPTI %s, %d of %d steps armed (last: %s), diagnostics: %s" % (
        code, collector(trace), trace.process.get("cupti_version", "?"), len(armed_steps(trace)), len(trace.steps),
        last, "; ".join(bad) or "none")
    good = code == 0 and armed_steps(trace) and not any("not measured" in text for text in bad)
    return Answer(YES if good else NO, seen)


@probe(2)
def order(p):
    """Layers of different sizes: each one's forward FLOP must be its own, which a shifted range would not give."""
    _, _, _, trace = p.train_measured()
    drops = {what: count for what, count in trace.drops.items() if "ranges" in what}
    wrong, checked = [], 0
    batch = 256
    for number, layer in trace.layers.items():
        if layer.get("class_name") != "Linear" or not layer.get("parameters"):
            continue
        values = [flop_of(trace, key) for key in forward_keys(trace, number)]
        values = [value for value in values if value is not None]
        if not values:
            continue
        checked += 1
        ratio = max(values) / (2 * batch * layer["parameters"])
        if not 0.99 <= ratio <= 1.05:
            wrong.append("%s: %.3f" % (layer.get("path"), ratio))
    if not checked:
        raise NotAnswered("no layer has FLOP; drops: %s" % (drops or "none"))
    mismatch = "ranges-mismatch" in trace.diagnostic_ids()
    seen = "%d layers, executed / model FLOP in the forward wrong in: %s; drops: %s; ranges-mismatch: %s" % (
        checked, ", ".join(wrong) or "none", drops or "none", mismatch)
    return Answer(NO if wrong or drops or mismatch else YES, seen)


@probe(3)
def no_replay(p):
    code, _, log, trace = p.train_measured()
    plain_code, _, plain = p.train_plain()
    if not plain or not log:
        raise NotAnswered("exit codes %s and %s" % (code, plain_code))
    differing = [a["step"] for a, b in zip(plain, log) if a["loss"] != b["loss"]]
    seen = "%d armed steps; %d of %d losses differ from a plain run%s" % (
        len(armed_steps(trace)), len(differing), len(plain), ", first in step %d" % differing[0] if differing else "")
    if not armed_steps(trace):
        return Answer(NO, seen)
    return Answer(YES if not differing and len(plain) == len(log) else NO, seen)


@probe(6)
def correlation(p):
    _, _, _, trace = p.train_measured()
    strangers = trace.drops.get("kernel records without a launch", 0)
    timed = sum(1 for key in trace.keys if mean_of(trace, key, "rf.time") is not None)
    seen = "%d of %d launch keys have times; kernel records without a launch: %d" % (timed, len(trace.keys), strangers)
    return Answer(YES if timed and not strangers else NO, seen)


def session_probe(p, user=None):
    """integration_tests/gpu/session_probe.cc: (exit code, [(call, result)], {"anew": values, "kept": values})"""
    program = p.build / "tools" / "gpu_session_probe"
    if not program.exists():
        raise NotAnswered("no %s: build the target gpu_session_probe" % program)
    if p.options.simulated:
        cuda, cupti = p.device + "/driver/libcuda.so.1", p.device + "/cupti13/libcupti.so.13"
    else:
        cuda, cupti = "libcuda.so.1", p.train_measured()[3].process.get("cupti_path", "")
        if not cupti:
            raise NotAnswered("the trace does not say which libcupti there is")
    code, text = p.run("session-probe", [str(program), cuda, cupti], 60, user=user)
    calls = [(match.group(1), int(match.group(2))) for match in re.finditer(r"^(\S+) (-?\d+)$", text, re.M)]
    values = {match.group(1): [float(word) for word in match.group(2).split()]
              for match in re.finditer(r"^VALUES (\w+) (.*)$", text, re.M)}
    return code, calls, values


@probe(12)
def one_session(p):
    code, calls, values = session_probe(p)
    anew, kept = values.get("anew", []), values.get("kept", [])
    if not anew:
        failed = next(("%s returned %d" % call for call in calls if call[1] != 0), "exit code %s" % code)
        return Answer(NO, "not even a session for each: %s" % failed)
    if not kept:
        failed = [call for call in calls if call[1] != 0]
        how = "%s returned %d" % failed[-1] if failed else "it ended with %s" % code
        return Answer(NO, "in one session %s" % how)
    near = all(abs(a - b) <= 0.05 * max(a, 1) for a, b in zip(anew, kept))
    return Answer(YES if near and len(anew) == len(kept) else NO,
                  "bytes and instructions, twice each: enabled anew %s, in one session %s" % (anew, kept))


@probe(19)
def context_destroy(p):
    _, _, _, trace = p.train_measured()
    armed = [step["index"] for step in armed_steps(trace)]
    if not armed:
        raise NotAnswered("no armed step to reset the device in")
    results, codes = [], []
    for at in armed[:2]:
        steps = at + 20
        plain_code, _, _ = p.plain("reset", "--at", str(at), steps=steps)
        code, text, _, other = p.measured("reset", "--at", str(at), steps=steps, environment={"RFINJECT_OVERHEAD": "5"})
        codes.append((plain_code, code))
        results.append("step %d: exit code %s alone, %s under rfinject, %s" % (
            at, plain_code, code, "trace ends with %r" % (other.end or {}).get("reason") if other else "no trace"))
    return Answer(YES if all(pair == (0, 0) for pair in codes) else NO, "; ".join(results))


@probe(46)
def captured_steps(p):
    plain_code, plain_text, plain = p.plain("capture", steps=300)
    if plain_code != 0:
        raise NotAnswered("the program itself fails: %s" % last_line(plain_text))
    code, text, log, trace = p.measured("capture", steps=300, environment={"RFINJECT_OVERHEAD": "50"})
    if trace is None:
        return Answer(NO, "exit code %s, no trace: %s" % (code, last_line(text)))
    same = [a["loss"] for a in log] == [b["loss"] for b in plain]
    seen = "exit code %s, %d armed steps, losses equal: %s; %s" % (
        code, len(armed_steps(trace)), same, "; ".join(bad_diagnostics(trace)) or "no diagnostics")
    return Answer(YES if code == 0 and same else NO, seen if code == 0 else seen + "; " + last_line(text))
