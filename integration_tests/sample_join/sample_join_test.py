#!/usr/bin/env python3
"""Holds the join of samples with kernels against two windows of ResNet-18 (batch 128, TF32 convolutions) on an H100.

Both windows are of the same program, one sampled every 5 us and the other every 10 us, a step and a little long. Each
kernel must have about the same bytes in both. Then clocks are shifted and stretched, the kernels are exchanged for
others, and kernels whose bytes are known run on two streams.
"""
import argparse
import collections
import csv
import gzip
import json
import pathlib
import random
import subprocess
import tempfile
import unittest

DATA = pathlib.Path(__file__).parent / "testdata"
TOOL = None


def load(kind, interval):
    with gzip.open(DATA / f"h100_{kind}_{interval}.json.gz") as file:
        return json.load(file)


def join(samples, kernels):
    """Returns {(name, grid): (launches, us, bytes or None)} and what stderr said; no rows where it was refused."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, content in (("samples", samples), ("kernels", kernels)):
            paths.append(str(pathlib.Path(folder) / f"{name}.json.gz"))
            with gzip.open(paths[-1], "wt", compresslevel=1) as file:
                json.dump(content, file)
        run = subprocess.run([TOOL, *paths], capture_output=True, text=True, check=False)
    rows = {}
    for row in csv.DictReader(run.stdout.splitlines()):
        moved = float(row["dram_bytes"]) if row["dram_bytes"] else None
        rows[row["kernel"], row["grid"]] = (int(row["launches"]), float(row["time_us"]), moved)
    return (rows if run.returncode == 0 else None), run.stderr


def relative(a, b):
    return abs(a - b) / max(a, b)


class Recorded(unittest.TestCase):
    def test_bytes_of_kernels_do_not_depend_on_the_interval(self):
        (five, said), (ten, _) = (join(load("samples", i), load("kernels", i)) for i in (5000, 10000))
        self.assertGreaterEqual(float(said.split(" ticks a ns, ")[1].split(" %")[0]), 98)
        pairs = [(us, moved, ten[key][2]) for key, (_, us, moved) in five.items() if us > 30]
        self.assertGreater(len(pairs), 50)
        self.assertNotIn(None, [moved for pair in pairs for moved in pair])
        # Together, and nearly all of them each: of a kernel that was launched once, what another moved in the samples at
        # its two ends is a few percent.
        for least_us, together, most, share in ((30, 0.005, 0.02, 0.9), (90, 0.003, 0.02, 1.0)):
            chosen = [(a, b) for us, a, b in pairs if us > least_us]
            self.assertLess(sum(abs(a - b) for a, b in chosen) / sum(a for a, _ in chosen), together)
            near = sum(relative(a, b) <= most for a, b in chosen)
            self.assertGreaterEqual(near, share * len(chosen))

    def test_what_an_elementwise_kernel_must_move(self):
        rows, _ = join(load("samples", 5000), load("kernels", 5000))
        # relu's clamp reads 128 x 64 x 112 x 112 floats and writes as many; what the cache of 50 MB still holds is not read.
        moved = [moved for (name, grid), (_, _, moved) in rows.items()
                 if grid == "[100352,1,1]" and "launch_clamp_scalar" in name]
        self.assertEqual(len(moved), 1)
        self.assertTrue(0.9 < moved[0] / (2 * 4 * 128 * 64 * 112 * 112) < 1.01, moved)

    def test_clocks_may_be_shifted_and_count_in_other_units(self):
        samples, kernels = load("samples", 5000), load("kernels", 5000)
        expected, _ = join(samples, kernels)
        shifted = dict(samples, t=[t + int(60e3 * 2.1) for t in samples["t"]])
        in_ns = dict(samples, t=[t * 10 // 21 for t in samples["t"]],
                     clock0=[samples["clock0"][0], samples["clock0"][1] * 10 // 21],
                     clock1=[samples["clock1"][0], samples["clock1"][1] * 10 // 21])
        unknown = {key: samples[key] for key in ("interval", "t", "v")}
        for changed in (shifted, in_ns, unknown):
            rows, said = join(changed, kernels)
            self.assertIsNotNone(rows, said)
            for key, (_, us, moved) in expected.items():
                if us > 30:
                    self.assertLess(relative(rows[key][2], moved), 0.02, key)

    def test_the_wrong_kernels_are_refused(self):
        samples, kernels = load("samples", 5000), load("kernels", 5000)
        events = kernels["traceEvents"]
        last = max(e["ts"] + e["dur"] for e in events)
        backwards = [dict(e, ts=events[0]["ts"] + last - e["ts"] - e["dur"]) for e in events]
        lengths = [e["dur"] for e in events]
        random.Random(1).shuffle(lengths)
        other, now = [], events[0]["ts"]
        for event, length in zip(events, lengths):
            other.append(dict(event, ts=now, dur=length))
            now += length + 1.5
        for wrong in (backwards, other):
            rows, said = join(samples, dict(kernels, traceEvents=wrong))
            self.assertIsNone(rows)
            self.assertIn("do not explain", said)


class MadeUp(unittest.TestCase):
    """Two streams; the kernels of each have bytes that are known."""

    KINDS = {0: [("a", 40, 60e6), ("b", 25, 10e6), ("c", 60, 150e6)], 1: [("x", 35, 20e6), ("y", 50, 90e6)]}

    def window(self, busy, interval_us=5, length_us=15000):
        chance = random.Random(7)
        events, moves, truth = [], [], {}
        for stream, kinds in self.KINDS.items():
            now = 10.0 + 3 * stream
            while now < length_us:
                name, us, moved = chance.choice(kinds)
                us *= chance.uniform(0.97, 1.03)
                if stream == 0 or (now // 1000) % 2 < busy * 2:
                    events.append({"ph": "X", "cat": "kernel", "name": name, "ts": now, "dur": us,
                                   "args": {"grid": [stream + 1, 1, 1]}})
                    moves.append((now, now + us, moved / us))
                    truth[name] = moved
                now += us + chance.uniform(1, 3)
        edges = collections.defaultdict(float)
        for begin, end, rate in moves:
            for i in range(int(begin // interval_us), int(end // interval_us) + 1):
                edges[i] += rate * max(0, min(end, (i + 1) * interval_us) - max(begin, i * interval_us))
        t, v = [0, 1000], [5e9, 5e9]  # from Enable on
        for i in range(int(length_us / interval_us)):
            t += [1000 + i * interval_us * 1000, 1000 + (i + 1) * interval_us * 1000]
            noise = chance.gauss(1, 0.01)
            v += [edges[i] * 0.6 * noise, edges[i] * 0.4 * noise]
        samples = {"interval": interval_us * 1000, "t": t, "v": v,
                   "clock0": [1000, 1000], "clock1": [1000 + length_us * 1000, 1000 + length_us * 1000]}
        events.sort(key=lambda e: e["ts"])
        return samples, {"baseTimeNanoseconds": 1000, "traceEvents": events}, truth

    def test_kernels_that_overlap(self):
        for busy in (0.5, 1.0):
            samples, kernels, truth = self.window(busy)
            rows, said = join(samples, kernels)
            self.assertIsNotNone(rows, said)
            found = {name: moved for (name, _), (_, _, moved) in rows.items()}
            self.assertEqual(found.keys(), truth.keys())
            for name, moved in truth.items():
                self.assertIsNotNone(found[name], (busy, name))
                self.assertLess(relative(found[name], moved), 0.05, (busy, name))

    def test_kernels_that_always_run_together_have_no_bytes(self):
        samples, kernels, _ = self.window(0)
        pairs = [dict(e, name=e["name"] + "'", args={"grid": [9, 1, 1]}) for e in kernels["traceEvents"]]
        both = sorted(kernels["traceEvents"] + pairs, key=lambda e: e["ts"])
        rows, said = join(samples, dict(kernels, traceEvents=both))
        self.assertIsNotNone(rows, said)
        self.assertEqual({moved for _, _, moved in rows.values()}, {None})


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    arguments, rest = parser.parse_known_args()
    TOOL = arguments.tool
    unittest.main(argv=["sample_join_test.py", *rest])
