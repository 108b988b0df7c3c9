#!/usr/bin/env python3
"""The studies' tables from one import and one report, and CSVs that can be recomputed.

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
HERE = pathlib.Path(__file__).resolve().parent
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

    def run_cli(self, *arguments, code=0):
        result = subprocess.run([OPTIONS.rfinject, *map(str, arguments)], cwd=self.folder, capture_output=True,
                                text=True, timeout=60)
        self.assertEqual(result.returncode, code, result.stderr)
        return result

    def imported(self, *sources):
        path = self.folder / "imported.rfx"
        self.run_cli("import", "ncu", *sources, "-o", path)
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


class FixtureTest(unittest.TestCase):
    def test_files_are_what_the_script_writes(self):
        for study, model, gpu in make_fixtures.PUBLISHED:
            path = HERE / study / f"{model}_{gpu}.csv"
            self.assertEqual(path.read_text(encoding="utf-8"), make_fixtures.fixture(study, model, gpu), path)


class StudiesTest(Command):
    def test_tables(self):
        for study in ("002", "004"):
            trace = self.imported(HERE / study)
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
                trace = self.imported(HERE / study / f"{model}_{gpu}.csv")
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
            trace = self.imported(HERE / "004" / f"resnet18_{gpu}.csv")
            report = self.json(trace, "--theory", theory)
            self.assertEqual({alarm["id"] for alarm in report["alarms"]}, ids, gpu)

    def test_what_a_text_search_loses(self):
        # Study 4: lines with Kbyte, and of those each run of digits.
        for (study, model, gpu), (_, size, _) in make_fixtures.PUBLISHED.items():
            if study != "004":
                continue
            text = (HERE / study / f"{model}_{gpu}.csv").read_text(encoding="utf-8")
            found = [line for line in text.splitlines() if "dram__bytes_" in line and "Kbyte" in line]
            searched = sum(int(digits) for line in found for digits in re.findall(r"\d+", line.rsplit(",\"", 1)[1]))
            self.assertTrue(found)
            self.assertNotAlmostEqual(searched * 1000 / size, 1, places=1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rfinject", required=True)
    parser.add_argument("--make-trace", required=True)
    OPTIONS, rest = parser.parse_known_args()
    OPTIONS.rfinject = str(pathlib.Path(OPTIONS.rfinject).resolve())
    OPTIONS.make_trace = str(pathlib.Path(OPTIONS.make_trace).resolve())
    unittest.main(argv=[sys.argv[0], *rest])
