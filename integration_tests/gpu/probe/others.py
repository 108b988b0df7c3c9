"""Questions about others that want the counters: permission, DCGM, torch.profiler."""
import os
import re
import subprocess
import time

from probe.counting import session_probe
from probe.machine import admin_only
from probe.question import NO, SEEN, YES, Answer, NotAnswered, probe
from probe.run import last_line
from probe.traces import armed_steps, bad_diagnostics, collector


@probe(13)
def permission(p):
    restricted = admin_only()
    if restricted is None:
        raise NotAnswered("the driver does not say RmProfilingAdminOnly")
    if restricted == 0:
        raise NotAnswered("RmProfilingAdminOnly is 0 here: everybody may")
    user = None
    if os.geteuid() == 0:
        user = 65534  # nobody
    code, text, _, trace = p.measured("train", user=user, steps=60)
    if trace is None:
        raise NotAnswered("no trace as user %s (exit code %s): %s" % (user, code, last_line(text)))
    said = [d for d in trace.diagnostics if d.get("id") == "counters-permission"]
    seen = "; ".join(d.get("text", "") for d in said) or "no counters-permission; collector %s, %s" % (
        collector(trace), "; ".join(bad_diagnostics(trace)))
    try:
        refused = [call for call in session_probe(p, user)[1] if call[1] != 0]
        seen += "; call by call: %s" % (", ".join("%s %d" % call for call in refused) or "none refuses")
    except NotAnswered as why:
        seen += "; call by call: %s" % why
    return Answer(YES if code == 0 and said else NO, seen)


@probe(14)
def dcgm(p):
    dcgmi = p.tool("dcgmi")
    watcher = subprocess.Popen([dcgmi, "dmon", "-e", "1002,1004,1005"], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True)
    time.sleep(3)
    if watcher.poll() is not None:
        raise NotAnswered("dcgmi dmon ends with %s: no nv-hostengine?" % watcher.returncode)
    try:
        code, _, _, trace = p.measured("train", steps=100)
    finally:
        p.end_group(watcher)
    if trace is None:
        raise NotAnswered("no trace (exit code %s)" % code)
    return Answer(SEEN, "exit code %s, collector %s, %d armed steps, %s" % (
        code, collector(trace), len(armed_steps(trace)), "; ".join(bad_diagnostics(trace)) or "no diagnostics"))


@probe(15)
def torch_profiler(p):
    plain_code, plain_text, _ = p.plain("profiler", steps=90)
    code, text, _, trace = p.measured("profiler", steps=90, environment={"RFINJECT_OVERHEAD": "20"})
    events = [re.search(r"profiler events (\d+) on the device (\d+)", out) for out in (plain_text, text)]
    if trace is None or not all(events):
        return Answer(NO, "exit codes %s and %s: %s" % (plain_code, code, last_line(text)))
    seen = "torch.profiler: %s device events alone, %s under rfinject; our armed steps: %s; diagnostics: %s" % (
        events[0].group(2), events[1].group(2), len(armed_steps(trace)), "; ".join(bad_diagnostics(trace)) or "none")
    same = int(events[1].group(2)) >= 0.95 * int(events[0].group(2))
    return Answer(YES if code == 0 and same else NO, seen)
