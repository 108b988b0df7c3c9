"""The four blocks. Each answers what it can and goes on; what fails costs the answers of nothing else."""
import csv
import gzip
import re
import shutil
import statistics

import rfx_trace
from probe.run import NotAnswered, last_line
from probe.trace import kept, layer_means, lost_seconds, model_keys, said, samples_of

COUNTED = ["resnet18_fp32", "resnet50_amp", "gpt_bf16"]
BESIDE = ["streams", "graph", "compiled", "profiled", "nccl", "tiny", "moves", "product_fp32", "product_tf32", "product_amp",
          "product_bf16"]
NETWORKS = ["resnet18_tf32", "resnet18_amp", "resnet50_fp32", "resnet152_bf16", "vgg16_amp", "densenet121_tf32",
            "mobilenet_v3_amp", "efficientnet_b0_amp", "convnext_tiny_bf16", "regnet_y_8gf_amp", "vit_b_16_bf16", "vit_b_16_tf32",
            "swin_t_amp", "alexnet_fp32", "unet_bf16", "recurrent_tf32", "recommender_tf32", "bert_bf16", "bert_tf32",
            "llama_bf16", "opt_fp32"]
WHY_DROPPED = {1: "too few samples or kernels", 2: "kernels do not explain the samples", 3: "overflow", 4: "CUPTI refused"}


def counting(p):
    """A: what counting costs, whether the program is unharmed, and whether the numbers are right."""
    seen, trace, chunks = p.measured("a-measured", COUNTED)
    for name, row in seen.items():
        if "failed" in row:
            p.answer("A", name, row["failed"])
            continue
        steps = row["steps_ms"]
        median = statistics.median(steps[1:])
        p.answer("A", name + ": time", "%d steps of %.3f ms, %.2f s lost, the longest %.2f times the median, %d above 1.3" % (
            len(steps), median, lost_seconds(steps), max(steps[1:]) / median, sum(ms > 1.3 * median for ms in steps[1:])))
    if trace is None:
        raise NotAnswered("no trace was written")
    p.answer("A", "the trace", "collector %s, CUPTI %s; %s; drops: %s" % (
        trace.run.get("collector"), trace.process.get("cupti_version", "?"), said(trace), trace.drops or "none"))
    for name in seen:
        keys = model_keys(trace, name)
        flop, moved = samples_of(trace, keys, "rf.flop."), samples_of(trace, keys, "rf.dram_bytes")
        p.answer("A", name + ": keys", "%d, of which %d have FLOP and %d bytes, of %s samples at the median" % (
            len(keys), len(flop), len(moved), statistics.median(moved) if moved else "no"))
    windows = kept(chunks, "sampled_window")
    sampled, in_kernels = (sum(w.get(field, 0) for w in windows) for field in ("dram_bytes", "kernel_bytes"))
    dropped = {why: sum(w.get("dropped") == code for w in windows) for code, why in WHY_DROPPED.items()}
    p.answer("A", "windows of sampling", "%d; %.2f %% of %.4g bytes in kernels; dropped: %s" % (
        len(windows), 100 * in_kernels / max(1, sampled), sampled, {k: n for k, n in dropped.items() if n} or "none"))
    cost = {}
    for record in kept(chunks, "counting_cost"):
        cost[record.get("what", "")] = cost.get(record.get("what", ""), 0) + record.get("ns", 0)
    p.answer("A", "cost by its own clock", ", ".join("%s %.3f s" % (what, ns / 1e9) for what, ns in cost.items()) or "none")
    against(p, seen, trace)
    beside_plain(p, "A", seen, p.battery("a-plain", list(seen))[0])


def beside_plain(p, block, seen, plain):
    for name, row in seen.items():
        alone = plain.get(name, {"failed": "did not run"})
        if "failed" in row or "failed" in alone:
            p.answer(block, name + ": beside a plain run", "with rfinject: %s; alone: %s" % (
                row.get("failed", "ran"), alone.get("failed", "ran")))
            continue
        third = len(row["steps_ms"]) // 3
        late = [statistics.median(one["steps_ms"][-third:]) for one in (row, alone)]
        differing = [i for i, (a, b) in enumerate(zip(row["losses"], alone["losses"])) if a != b]
        p.answer(block, name + ": beside a plain run", "the last third of the steps takes %.4f times as long (%.3f and %.3f ms); "
                 "losses equal: %s%s" % (late[0] / late[1], *late, not differing,
                                         "; %s, alone %s" % (row["said"], alone["said"]) if row["said"] else ""))


def against(p, seen, trace):
    """FLOP and bytes of each layer and phase against traces of the same programs, one model each, named PROGRAM.rfx."""
    for name in seen:
        path = p.options.against and p.options.against / (name + ".rfx")
        if not path or not path.exists():
            continue
        other = rfx_trace.read_trace(str(path), strict=False)
        models = {other.model_name(layer) for layer in other.layers.values()} - {""}
        for prefix in ("rf.flop.", "rf.dram_bytes"):
            ours = layer_means(trace, name, prefix)
            theirs = {place: value for model in models for place, value in layer_means(other, model, prefix).items()}
            steps = max(1, len(trace.steps)), max(1, len(other.steps))
            pairs = {place: (ours[place] / steps[0], theirs[place] / steps[1]) for place in ours.keys() & theirs.keys()}
            worst = max(pairs, key=lambda place: abs(pairs[place][0] - pairs[place][1]) / max(*pairs[place], 1), default=None)
            p.answer("A", "%s: %s against %s" % (name, prefix.strip("."), path.name), "%d layers and phases in both; sums %.6g and "
                     "%.6g; most different %s: %s" % (len(pairs), sum(a for a, _ in pairs.values()),
                                                      sum(b for _, b in pairs.values()), worst, pairs.get(worst)))


def beside(p):
    """B: what else runs in the process or on the GPU."""
    sessions(p)
    seen, trace, _ = p.measured("b-measured", BESIDE, steps=p.steps // 3)
    if trace is not None:
        p.answer("B", "the trace", "%s; drops: %s" % (said(trace), trace.drops or "none"))
        for name in [name for name in seen if name.startswith(("moves", "product"))]:
            for prefix, expected in (("rf.dram_bytes", "a copy moves 1.074e+09 and a sum 1.611e+09"),
                                     ("rf.flop.", "a product has 1.0995e+12")):
                if (prefix == "rf.flop.") != name.startswith("product"):
                    continue
                found = layer_means(trace, name, prefix)
                launches = {}
                for key in model_keys(trace, name):
                    place = (trace.layers[trace.keys[key]["layer"]].get("path", ""),
                             rfx_trace.PHASES[trace.keys[key].get("phase", 0)])
                    launches[place] = max(launches.get(place, 0), trace.launches.get(key, 0))
                p.answer("B", "%s: %s a launch" % (name, prefix.strip(".")), "%s; %s" % (
                    {"%s %s" % place: "%.5g" % (value / max(1, launches[place])) for place, value in found.items()}, expected))
    beside_plain(p, "B", seen, p.battery("b-plain", list(seen), steps=p.steps // 3)[0])


def sessions(p):
    """integration_tests/gpu/session_probe.cc: calls of CUPTI in an order that no program's run has."""
    program = p.build / "tools" / "gpu_session_probe"
    if p.options.simulated:
        cuda, cupti = p.device + "/driver/libcuda.so.1", p.device + "/cupti13/libcupti.so.13"
    else:
        code, text = p.run("cupti", [p.python, "-c", "import torch, ctypes; torch.cuda.init(); print([line.split()[-1] for line in "
                                     "open('/proc/self/maps') if 'libcupti' in line][0])"], 60)
        cuda, cupti = "libcuda.so.1", last_line(text)
        if code != 0:
            p.answer("B", "sessions", "which libcupti torch brings is not known: " + last_line(text))
            return
    try:
        code, text = p.run("sessions", [program, cuda, cupti], 60)
    except NotAnswered as why:
        p.answer("B", "sessions", str(why))
        return
    refused = re.findall(r"^(\S+ -?[1-9]\d*)$", text, re.M)
    values = re.findall(r"^VALUES (\w+) (.*)$", text, re.M)
    p.answer("B", "sessions", "exit code %s; refused: %s; %s" % (
        code, ", ".join(refused) or "nothing", "; ".join("%s: %s" % pair for pair in values)))


def columns(p):
    """C: one network layer by layer, by rfinject, torch.profiler and an estimate; and by ncu kernel by kernel."""
    rfinject, name = p.build / "bin" / "rfinject", COUNTED[0]
    found = {}

    def report(column, file, by="layer"):
        table = p.out / ("c-%s.csv" % column)
        p.run("report-" + column, [rfinject, "report", file, "--by", by, "--format", "csv", "-o", table, "--rows", "0"], 60)
        with open(table, encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines):
                if row.get("record") == "row":
                    steps = max(1.0, float(row.get("steps") or 1))
                    place = (row.get("layer") or row.get("kernel"), row.get("phase"))
                    found.setdefault(place, {})[column] = tuple(
                        float(row.get(field) or "nan") / steps for field in ("time_ns", "flop", "dram_bytes"))

    record = p.out / "c-recording"
    record.mkdir(parents=True, exist_ok=True)
    jobs = {
        "rfinject": lambda: (p.measured("c-measured", [name], steps=p.steps // 3), report("rfinject", p.out / "c-measured-trace")),
        "torch": lambda: (p.battery("c-torch", [name], "--record", record, steps=6),
                          report("torch", record / (name + ".json"))),
        "estimate": lambda: (p.battery("c-estimate", [name], steps=3,
                                       before=[rfinject, "--estimate", p.options.gpu, "-o", p.out / "c-estimate.rfx"],
                                       environment={"RFINJECT_ESTIMATE_ON": "virtual-gpu"}),
                             report("estimate", p.out / "c-estimate.rfx")),
        "ncu": lambda: ncu(p, name, report),
    }
    for column, job in jobs.items():
        try:
            job()
            p.answer("C", column, "%d rows" % sum(column in row for row in found.values()))
        except (NotAnswered, OSError) as why:
            p.answer("C", column, "none: %s" % why)
    with open(p.out / "columns.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["row", "phase"] + ["%s_%s" % (column, field) for column in jobs
                                            for field in ("time_ns", "flop", "dram_bytes")])
        for place, row in sorted(found.items(), key=str):
            writer.writerow([*place, *(value for column in jobs for value in row.get(column, ("", "", "")))])
    p.answer("C", "columns.csv", "%d rows of a step: time, FLOP and bytes by %s" % (len(found), ", ".join(jobs)))


def ncu(p, name, report):
    if p.options.simulated:
        raise NotAnswered("ncu does not run on the simulated GPU")
    program = shutil.which("ncu", path=p.environment.get("PATH"))
    if program is None:
        raise NotAnswered("no ncu here")
    table = p.out / "c-ncu-raw.csv"
    metrics = ("gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum,"
               "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum,smsp__sass_thread_inst_executed_op_fadd_pred_on.sum,"
               "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum")
    p.battery("c-ncu", [name], "--ncu", steps=6, limit=180,
              before=[program, "--csv", "--profile-from-start", "off", "--cache-control", "none", "--clock-control", "none",
                      "--metrics", metrics, "--log-file", table])
    report("ncu", table, by="kernel")


def networks(p):
    """D: a recording of one step of many networks, without rfinject, and their steps' times: what estimates are held against."""
    folder = p.out / "networks"
    folder.mkdir(parents=True, exist_ok=True)
    seen, _ = p.battery("d-networks", NETWORKS, "--record", folder, steps=p.steps // 10)
    for path in folder.glob("*.json"):
        with open(path, "rb") as plain, gzip.open(str(path) + ".gz", "wb", 6) as packed:
            shutil.copyfileobj(plain, packed)
        path.unlink()
    for name, row in seen.items():
        p.answer("D", name, row.get("failed") or "%.3f ms a step, peak %.2f GB" % (
            statistics.median(row["steps_ms"][len(row["steps_ms"]) // 3:-1]), row["peak"] / 1e9))


BLOCKS = {"A": counting, "B": beside, "C": columns, "D": networks}
