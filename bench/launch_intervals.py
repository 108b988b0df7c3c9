"""bench/launch_intervals.py: how fast hosts launch kernels, and how closely kernels follow one another, in recordings.

    python3 bench/launch_intervals.py [FOLDER|FILE...]

For each recording of torch.profiler (*.json.gz, *.json; default: those of cli/import/testdata) in us: the host's interval from
the begin of one call that launches to the next one's on the same thread (pauses above 1 ms are left out), and the GPU's gap
from the end of one kernel to the begin of the next on the same stream, where the next was launched before the first began.
A recording holds what recording costs the host. The sources of kLaunchIntervalNs (cli/report/report.h) and kKernelGapNs
(cli/model/launch_queue.h).
"""
import argparse
import collections
import gzip
import json
import pathlib
import statistics

ROOT = pathlib.Path(__file__).resolve().parent.parent
LAUNCHES = ("LaunchKernel", "ModuleLaunch")
PAUSE_US = 1000
FEW = 10


def events_of(path):
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8", errors="replace") as file:
        recording = json.load(file, strict=False)
    return [event for event in (recording["traceEvents"] if isinstance(recording, dict) else recording) if event.get("ph") == "X"]


def intervals_and_gaps(events):
    calls, kernels, launched = collections.defaultdict(list), collections.defaultdict(list), {}
    for event in events:
        kind, start, ns = str(event.get("cat", "")).lower(), float(event.get("ts", 0)), float(event.get("dur", 0))
        where = event.get("args", {})
        if "runtime" in kind or "driver" in kind:
            if any(name in event["name"] for name in LAUNCHES):
                calls[event["pid"], event["tid"]].append(start)
                launched[where.get("correlation")] = start + ns
        elif kind == "kernel":
            kernels[where.get("device"), where.get("stream")].append((start, ns, where.get("correlation")))
    intervals, gaps = [], []
    for starts in calls.values():
        starts.sort()
        intervals += [b - a for a, b in zip(starts, starts[1:]) if b - a < PAUSE_US]
    for of_stream in kernels.values():
        of_stream.sort(key=lambda kernel: kernel[:2])
        gaps += [b[0] - a[0] - a[1] for a, b in zip(of_stream, of_stream[1:]) if launched.get(b[2], a[0]) < a[0]]
    return intervals, gaps


def at(values, share):
    return sorted(values)[int(share * (len(values) - 1))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=pathlib.Path, default=[ROOT / "cli" / "import" / "testdata"])
    files = []
    for path in parser.parse_args().paths:
        files += sorted([*path.glob("*.json.gz"), *path.glob("*.json")]) if path.is_dir() else [path]
    print(f"{'recording':44} launches   p10   p50  mean    gaps   p10   p50   p90")
    for path in files:
        try:
            intervals, gaps = intervals_and_gaps(events_of(path))
        except (KeyError, TypeError, ValueError):
            continue  # not a recording of this kind
        if len(intervals) <= FEW:
            continue
        line = f"{path.name[:44]:44} {len(intervals):8} {at(intervals, .1):5.1f} {at(intervals, .5):5.1f} {statistics.mean(intervals):5.1f}"
        if len(gaps) > FEW:
            line += f" {len(gaps):7} {at(gaps, .1):5.2f} {at(gaps, .5):5.2f} {at(gaps, .9):5.2f}"
        print(line)


if __name__ == "__main__":
    main()
