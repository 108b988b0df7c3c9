#!/usr/bin/env python3
"""The studies' tables from one import and one report, CSVs that can be recomputed, and pictures that say the same.

    studies_test.py --rfinject BIN --make-trace BIN [unittest arguments]
"""
import argparse
import csv
import io
import json
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import make_fixtures

OPTIONS = argparse.Namespace()
V100, A100 = make_fixtures.V100, make_fixtures.A100
# As the studies print them: FLOP/byte, GFLOP/s and, of study 2, what its points can attain, GFLOP/s (the audit of
# its chart: FLOP/byte times bandwidth, at most the FP32 peak). With the digits that are printed, but for VGG-19 on V100:
# the study has 2697.852 there, and its own FLOP and time give 2697.850.
PRINTED = {
    ("002", "vgg11", V100): ("13.381", "1357.521", "12043"),
    ("002", "vgg13", V100): ("15.646", "2141.142", "14082"),
    ("002", "vgg19", V100): ("17.641", "2697.85", "15700"),
    ("002", "vgg11", A100): ("1.202", "83.304", "1870"),
    ("002", "vgg13", A100): ("0.77", "82.156", "1200"),
    ("002", "vgg19", A100): ("0.6657", "74.60", "1035"),
    ("004", "resnet18", V100): ("21.94526421", "117.5495284", None),
    ("004", "resnet50", V100): ("19.68183554", "338.9661659", None),
    ("004", "resnet18", A100): ("4.447014117", "12.69709171", None),
    ("004", "resnet50", A100): ("1.440493544", "17.45664317", None),
}


class Command(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="rfinject-studies-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.studies = self.folder / "studies"
        make_fixtures.write(self.studies)

    def run_cli(self, *arguments, code=0):
        result = subprocess.run([OPTIONS.rfinject, *map(str, arguments)], cwd=self.folder, capture_output=True,
                                text=True, timeout=60)
        self.assertEqual(result.returncode, code, result.stderr)
        return result

    def imported(self, *sources):
        path = self.folder / "imported.rfx"
        self.run_cli("import", "ncu", *sources, "-o", path, "--force")
        return path

    def trace(self, kind):
        path = self.folder / f"{kind.replace(':', '')}.rfx"
        subprocess.run([OPTIONS.make_trace, kind, path], check=True)
        return path

    def csv(self, *arguments):
        return list(csv.DictReader(io.StringIO(self.run_cli("report", *arguments, "--format", "csv").stdout)))

    def json(self, *arguments):
        return json.loads(self.run_cli("report", *arguments, "--format", "json").stdout)

    def assert_printed(self, value, printed):
        """`value` is `printed` to the digits of it. Half a digit more: studies cut digits off where others round."""
        places = len(printed.partition(".")[2])
        self.assertLess(abs(value - float(printed)), 1.0 * 10 ** -places, (value, printed))


class StudiesTest(Command):
    def test_tables(self):
        for study in ("002", "004"):
            trace = self.imported(self.studies / study)
            lines = [line for line in self.csv(trace, "--by", "run") if line["record"] == "run"]
            runs = self.json(trace, "--by", "run")["runs"]
            expected = {key[1:]: value for key, value in make_fixtures.PUBLISHED.items() if key[0] == study}
            self.assertEqual({(line["model"], line["gpu"]) for line in lines}, set(expected))
            self.assertEqual(len(lines), len(expected))
            for line, run in zip(lines, runs):
                number = {name: float(text) for name, text in line.items() if re.fullmatch(r"-?[\d.]+(e[-+]\d+)?", text)}
                flop, size, time = expected[line["model"], line["gpu"]]
                with self.subTest(study=study, model=line["model"], gpu=line["gpu"]):
                    self.assertEqual(line["source"], "imported")
                    self.assertEqual((number["flop_per_step"], number["dram_bytes_per_step"],
                                      number["gpu_time_per_step_ns"]), (flop, size, time))
                    oi, performance, attainable = PRINTED[study, line["model"], line["gpu"]]
                    self.assert_printed(number["oi_flop_per_byte"], oi)
                    self.assert_printed(number["performance_flop_per_s"] / 1e9, performance)
                    # The studies hold the sums against one roof.
                    one_roof = flop / max(number["least_compute_time_per_step_ns"],
                                          number["least_memory_time_per_step_ns"])
                    if attainable:
                        self.assert_printed(one_roof, attainable)
                    # rfinject holds each kernel against its own: never more, and less where kernels differ in what
                    # bounds them.
                    kernels = number["attainable_flop_per_s"] / 1e9
                    self.assertLess(kernels, one_roof * (1 if line["gpu"] == V100 else 1 + 1e-12))
                    for name in ("flop_per_step", "dram_bytes_per_step", "gpu_time_per_step_ns", "oi_flop_per_byte",
                                 "performance_flop_per_s", "attainable_flop_per_s", "attainable_share"):
                        self.assertEqual(run[name], number[name], name)

    def test_missing_tensor_counters_are_named(self):
        for study, model, gpu in make_fixtures.PUBLISHED:
            with self.subTest(study=study, model=model, gpu=gpu):
                trace = self.imported(self.studies / make_fixtures.name(study, model, gpu))
                alarms = self.json(trace, "--by", "kernel")["alarms"]
                if gpu == V100:  # FP32 on CUDA cores, all counted: nothing is wrong with the sums as such
                    self.assertEqual(alarms, [])
                    self.run_cli("report", trace, "--strict")
                    continue
                self.assertEqual({alarm["id"] for alarm in alarms}, {"R004"})
                text = json.dumps(alarms)
                for part in ("no tensor counter was collected", "s1688fprop", "s1688dgrad", "xmma_wgrad"):
                    self.assertIn(part, text)
                self.assertIn("R004", self.run_cli("report", trace, "--strict", code=3).stdout)
                self.run_cli("report", trace, "--strict", "--by", "run", code=3)

    def test_missing_flop_are_named_beside_theory(self):
        theory = self.trace("v100")  # a ResNet-18, batch 8
        for gpu, ids in ((V100, set()), (A100, {"R004", "R009"})):
            trace = self.imported(self.studies / make_fixtures.name("004", "resnet18", gpu))
            report = self.json(trace, "--theory", theory)
            self.assertEqual({alarm["id"] for alarm in report["alarms"]}, ids, gpu)

    def test_what_a_text_search_loses(self):
        # Study 4: lines with Kbyte, and of those each run of digits.
        for (study, model, gpu), (_, size, _) in make_fixtures.PUBLISHED.items():
            if study != "004":
                continue
            text = (self.studies / make_fixtures.name(study, model, gpu)).read_text(encoding="utf-8")
            found = [line for line in text.splitlines() if "dram__bytes_" in line and "Kbyte" in line]
            searched = sum(int(digits) for line in found for digits in re.findall(r"\d+", line.rsplit(",\"", 1)[1]))
            self.assertTrue(found)
            self.assertNotAlmostEqual(searched * 1000 / size, 1, places=1)


# Columns of a report's CSV that are ratios, and what of: sums in the same line.
RATIOS = {
    "oi_flop_per_byte": lambda n: n["flop"] / n["dram_bytes"],
    "oi_l2_flop_per_byte": lambda n: n["flop"] / n["l2_bytes"],
    "oi_l1_flop_per_byte": lambda n: n["flop"] / n["l1_bytes"],
    "performance_flop_per_s": lambda n: n["flop"] / n["time_ns"] * 1e9,
    "bandwidth_bytes_per_s": lambda n: n["dram_bytes"] / n["time_ns"] * 1e9,
    "attainable_flop_per_s": lambda n: n["flop"] / n["least_time_ns"] * 1e9,
    "attainable_share": lambda n: n["least_time_ns"] / n["time_ns"],
    "slack_ns": lambda n: n["time_ns"] - n["least_time_ns"] if n["time_ns"] else 1 / 0,
    "executed_flop_per_model_flop": lambda n: n["flop"] / n["model_flop"],
    "dram_bytes_per_compulsory_byte": lambda n: n["dram_bytes"] / n["compulsory_bytes"],
    "gpu_clock_hz": lambda n: n["gpu_cycles"] / n["time_with_counters_ns"] * 1e9 if n["gpu_cycles"] else 1 / 0,
}
PRECISIONS = ("fp64", "fp32", "fp16", "tf32_tc", "fp16_tc", "bf16_tc", "fp8_tc", "fp64_tc")
SUMS = {"launches", "time_ns", "flop", *("flop_" + name for name in PRECISIONS), "flop_mma_tc", "model_flop", "dram_bytes",
        "compulsory_bytes", "l2_bytes", "l1_bytes", "pcie_bytes", "nvlink_bytes", "least_compute_time_ns",
        "least_memory_time_ns", "least_link_time_ns", "least_time_ns", "time_with_counters_ns", "launch_bound_time_ns",
        "memory_bound_time_ns", "compute_bound_time_ns", "pcie_bound_time_ns", "nvlink_bound_time_ns", "ideal_time_ns",
        "time_low_ns", "time_high_ns", "usual_time_ns", "usual_time_low_ns", "usual_time_high_ns", "time_with_usual_ns",
        "other_gpu_time_ns", "other_gpu_time_low_ns", "other_gpu_time_high_ns", "gpu_idle_before_ns", "gpu_cycles", "kernel_launches"}
# Spread of samples, which sums do not have.
SPREADS = {"time_ci95_relative", "time_interval", "time_interval_lacks_share", "time_step_spread_relative",
           "time_step_p95_ns", "dram_bytes_ci95_relative", "dram_bytes_interval", "dram_bytes_interval_lacks_share"}
# The same for --by run; "step" is the number of steps.
RUN_RATIOS = {
    "oi_flop_per_byte": lambda n: n["flop_per_step"] / n["dram_bytes_per_step"],
    "performance_flop_per_s": lambda n: n["flop_per_step"] / n["gpu_time_per_step_ns"] * 1e9,
    "attainable_flop_per_s": lambda n: n["flop_per_step"] / n["least_time_per_step_ns"] * 1e9,
    "attainable_share": lambda n: n["least_time_per_step_ns"] / n["gpu_time_per_step_ns"],
    "forward_oi_flop_per_byte": lambda n: n["forward_flop_per_step"] / n["forward_dram_bytes_per_step"],
    "forward_attainable_share": lambda n: n["forward_least_time_per_step_ns"] / n["forward_time_per_step_ns"],
    "backward_flop_per_forward_flop": lambda n: n["backward_flop_per_step"] / n["forward_flop_per_step"],
    "backward_time_per_forward_time": lambda n: n["backward_time_per_step_ns"] / n["forward_time_per_step_ns"],
}


def numbers_of(line):
    """The cells of a line that are numbers; 0 for the sums that are unknown."""
    numbers = {name: 0.0 for name in SUMS}
    for name, text in line.items():
        try:
            numbers[name] = float(text)
        except ValueError:
            pass
    return numbers


class CsvTest(Command):
    def traces(self):
        yield self.trace("v100")
        yield self.trace("a100")
        yield self.trace("measured")
        yield self.trace("random:3")
        yield self.imported(self.studies / "004")
        yield self.with_caches()

    def with_caches(self):
        """A run on a Hopper GPU whose counters tell the bytes of all levels and both tensor paths."""
        values = {"gpu__time_duration.sum": ("ns", 1000000), "dram__bytes_read.sum": ("byte", 7 * 10**8),
                  "gpc__cycles_elapsed.max": ("cycle", 1500000), "lts__t_bytes.sum": ("byte", 11 * 10**8), "l1tex__t_bytes.sum": ("byte", 13 * 10**8),
                  "sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32_sparsity_off.sum": ("", 3 * 10**11),
                  "sm__ops_path_tensor_op_hmma_src_bf16_dst_fp32_sparsity_off.sum": ("", 10**11)}
        path = self.folder / "net_H100-SXM5-80GB.csv"
        with open(path, "w", newline="") as file:
            table = csv.writer(file, quoting=csv.QUOTE_ALL)
            table.writerow(["ID", "Process ID", "Kernel Name", "Block Size", "Grid Size", "Device", "CC", *values])
            table.writerow([""] * 7 + [unit for unit, _ in values.values()])
            table.writerow([0, 7, "k", "(128, 1, 1)", "(64, 1, 1)", 0, "9.0", *(value for _, value in values.values())])
        return self.imported(path)

    def test_ratios_follow_from_sums(self):
        checked = set()
        for trace in self.traces():
            for by in ("model", "phase", "layer", "op", "kernel"):
                lines = self.csv(trace, "--by", by)
                names = list(lines[0])
                numeric = names[names.index("launches"):names.index("roof_precision")]
                # A column that is neither checked here nor a sum must not be added unnoticed.
                self.assertEqual(set(numeric) - SUMS - SPREADS - set(RATIOS),
                                 {"time_share", "bound", "flop_reason", "counters_of", "kernels"})
                total = {}
                for line in lines:
                    group = line["record"], line["run"]
                    total[group] = total.get(group, 0) + float(line["time_ns"] or 0)
                for line in lines:
                    with self.subTest(trace=trace.name, by=by, line=line["record"] + " " + line["layer"]):
                        n = numbers_of(line)
                        if line["record"] == "roof" and not line["roof_precision"]:
                            self.assertIn(line["roof_level"], ("L2", "L1"))  # a bandwidth alone
                            continue
                        if line["record"] == "roof":
                            self.assertTrue(math.isclose(n["ridge_flop_per_byte"] * n["roof_bytes_per_s"],
                                                         n["roof_peak_flop_per_s"], rel_tol=1e-12))
                            continue
                        self.assertTrue(math.isclose(sum(n["flop_" + p] for p in PRECISIONS), n["flop"], rel_tol=1e-12))
                        whole = total[line["record"], line["run"]]
                        self.assertEqual(line["time_share"] == "", n["time_ns"] == 0, n)  # no time has no share
                        if n["time_ns"] > 0:
                            self.assertTrue(math.isclose(n["time_share"], n["time_ns"] / whole, rel_tol=1e-9, abs_tol=1e-15), n)
                        if n["least_time_ns"] > 0:
                            bounds = {bound: n[bound + "_bound_time_ns"] for bound in ("memory", "compute", "launch")}
                            # It is not known what binds a kernel without counters.
                            self.assertLessEqual(sum(bounds.values()), n["time_ns"] * (1 + 1e-9), n)
                            self.assertEqual(line["bound"], max(bounds, key=bounds.get))
                        for name, ratio in RATIOS.items():
                            try:
                                expected = ratio(n)
                            except ZeroDivisionError:
                                self.assertEqual(line[name], "", name)  # never a 0 for what is unknown
                                continue
                            if line[name] == "":  # a ratio to roofs that are not known
                                self.assertEqual(line["roofs_of"], "", name)
                                continue
                            checked.add(name)
                            self.assertTrue(math.isclose(n[name], expected, rel_tol=1e-12, abs_tol=1e-6),
                                            (name, n[name], expected))
        self.assertEqual(checked, set(RATIOS))

    def test_ratios_of_runs_follow_from_sums(self):
        checked = set()
        for trace in self.traces():
            for line in self.csv(trace, "--by", "run"):
                if line["record"] != "run":
                    continue
                n = numbers_of(line)
                for name, ratio in RUN_RATIOS.items():
                    if line[name] == "":
                        continue
                    checked.add(name)
                    self.assertTrue(math.isclose(n[name], ratio(n), rel_tol=1e-12), (trace.name, name, n[name]))
        self.assertEqual(checked, set(RUN_RATIOS))


PREFIXES = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
TIMES = {"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
SVG = "{http://www.w3.org/2000/svg}"


def centre(path):
    """Of a mark's outline: the mean of a polygon's corners, the middle of a circle."""
    outline = path.partition("Z")[0]
    if "a" in outline:
        x, y, radius = (float(text) for text in re.findall(r"-?[\d.]+", outline)[:3])
        return x + radius, y
    corners = [tuple(map(float, corner.split())) for corner in re.split("[ML]", outline)[1:]]
    return tuple(sum(values) / len(corners) for values in zip(*corners))


class PictureTest(Command):
    """Every number of a picture's marks is in the CSV of the same report."""

    def picture_and_lines(self, trace, by):
        path = self.folder / "picture.svg"
        self.run_cli("report", trace, "--by", by, "-o", path, "--force")
        groups = [group for group in xml.etree.ElementTree.parse(path).iter(SVG + "g") if group.get("class") == "marks"]
        lines = self.csv(trace, "--by", by)
        kind = "layer_phase" if by == "layer" else "row"
        return groups, [line for line in lines if line["record"] == kind]

    def assert_digits(self, text, factor, value):
        """`text` times `factor` is `value` to the digits of `text`."""
        places = len(text.partition(".")[2])
        self.assertLessEqual(abs(float(text) * factor - value), .5000001 * factor * 10 ** -places, (text, value))

    def check_title(self, title, n):
        """Compares each number of a title with its column; returns how many."""
        count = 0
        steps = n["steps"] or 1
        for pattern, value, factors in (
                (r"([\d.]+) (ns|us|µs|ms|s) a step", n["time_ns"] / steps, TIMES),
                (r"([\d.]+) ([kMGTP]?)FLOP/s at", n.get("performance_flop_per_s"), PREFIXES),
                (r" at ([\d.]+)() FLOP/byte", n.get("oi_flop_per_byte"), {"": 1}),
                (r"(?<![<>\d.])([\d.]+) (%) of attainable", n.get("attainable_share"), {"%": .01}),
                (r"(?<![<>\d.])([\d.]+) (%) of GPU time", n["time_share"], {"%": .01}),
                (r"of attainable ([\d.]+) ([kMGTP]?)FLOP/s", n.get("attainable_flop_per_s"), PREFIXES),
                (r"([\d.]+) ([kMGTP]?)B/s from and to DRAM", n.get("bandwidth_bytes_per_s"), PREFIXES)):
            for text, unit in re.findall(pattern, title):
                self.assertIsNotNone(value, (pattern, title))
                self.assert_digits(text, factors[unit], value)
                count += 1
        return count

    def check_places(self, points):
        """The places are one linear map of the logarithms of the values, for each axis: [(place, value)]."""
        for axis in (0, 1):
            pairs = [(place[axis], math.log10(values[axis])) for place, values in points]
            low, high = min(pairs, key=lambda pair: pair[1]), max(pairs, key=lambda pair: pair[1])
            self.assertGreater(high[1] - low[1], .5)  # a fit through two points of one place says nothing
            slope = (high[0] - low[0]) / (high[1] - low[1])
            for place, value in pairs:
                self.assertLess(abs(low[0] + slope * (value - low[1]) - place), .3)

    def test_marks(self):
        sources = [(self.trace("v100"), "layer"), (self.trace("measured"), "layer"), (self.trace("measured"), "kernel"),
                   (self.imported(self.studies / make_fixtures.name("002", "vgg11", V100)), "kernel")]
        for trace, by in sources:
            with self.subTest(trace=trace.name, by=by):
                groups, lines = self.picture_and_lines(trace, by)
                self.assertEqual(len(groups), 2)  # the roofline and the time view
                for view, group in enumerate(groups):
                    points, found = [], 0
                    for mark in group:
                        line = lines[int(mark.get("data-i"))]
                        n = {k: v for k, v in numbers_of(line).items() if k not in RATIOS or line[k] != ""}
                        title = mark.find(SVG + "title").text
                        self.assertNotIn("U+000A", title)  # a line break, not what one is called
                        found += self.check_title(title, n)
                        css = mark.get("class").split()
                        values = ((n.get("oi_flop_per_byte", 0), n.get("performance_flop_per_s", 0)) if view == 0 else
                                  (n["least_compute_time_ns"], n["least_memory_time_ns"]))
                        if "out" not in css and "pn" not in css and min(values) > 0:
                            points.append((centre(mark.get("d")), values))
                    self.assertGreater(found, 4 * len(group) - 1 if by == "kernel" else 3 * len(group))
                    self.check_places(points)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rfinject", required=True)
    parser.add_argument("--make-trace", required=True)
    OPTIONS, rest = parser.parse_known_args()
    OPTIONS.rfinject = str(pathlib.Path(OPTIONS.rfinject).resolve())
    OPTIONS.make_trace = str(pathlib.Path(OPTIONS.make_trace).resolve())
    unittest.main(argv=[sys.argv[0], *rest])
