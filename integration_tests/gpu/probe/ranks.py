"""Questions about several ranks."""

import rfx_trace
from probe.question import NO, YES, Answer, NotAnswered, probe
from probe.run import last_line
from probe.traces import armed_steps


@probe(16)
def ranks(p):
    if p.options.simulated:
        raise NotAnswered("the simulated GPU has no NCCL")
    code, text = p.run("count", [p.python, "-c", "import torch; print(torch.cuda.device_count())"], 60)
    if code != 0 or int(last_line(text)) < 2:
        raise NotAnswered("only one GPU here; NCCL refuses two ranks on one")
    folder = p.out / "trace-ranks"
    command = [str(p.build / "bin" / "rfinject"), "-o", str(folder) + "/", p.python, "-m", "torch.distributed.run",
               "--standalone", "--nproc-per-node=2"] + p.workload("ranks", steps=100)[2:]
    code, text = p.run("ranks", command, 120, {"RFINJECT_MODE": "range", "RFINJECT_OVERHEAD": "20"})
    traces = rfx_trace.read_traces(str(folder), strict=False)
    return Answer(NO if code is None or code != 0 else YES, "%s; %d traces, armed steps %s" % (
        "did not end within its limit: it blocks" if code is None else "exit code %d" % code, len(traces),
        [len(armed_steps(trace)) for trace in traces]))


@probe(43)
def ranks_by_layer(p):
    if p.options.simulated:
        raise NotAnswered("the simulated GPU has no NCCL")
    code, text = p.run("count", [p.python, "-c", "import torch; print(torch.cuda.device_count())"], 60)
    if code != 0 or int(last_line(text)) < 2:
        raise NotAnswered("only one GPU here; NCCL refuses two ranks on one")
    folder = p.out / "trace-ranks-by-layer"
    command = [str(p.build / "bin" / "rfinject"), "-o", str(folder) + "/", p.python, "-m", "torch.distributed.run",
               "--standalone", "--nproc-per-node=2"] + p.workload("ranks", steps=100)[2:]
    code, text = p.run("ranks-by-layer", command, 120, {"RFINJECT_OVERHEAD": "20"})
    traces = rfx_trace.read_traces(str(folder), strict=False)
    armed = [[step["index"] for step in armed_steps(trace)] for trace in traces]
    by_layer = all(any(d.get("id") == "counters-by-layer" for d in trace.diagnostics) for trace in traces)
    good = code == 0 and by_layer and all(armed)
    return Answer(YES if good else NO, "exit code %s; armed steps %s; layer by layer: %s" % (code, armed, by_layer))
