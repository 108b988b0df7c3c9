#!/usr/bin/env python3
"""Each rule of advice against its pair of programs, and `rfinject advise` as a user meets it.

Environment: RFINJECT, the command; RFINJECT_PYTHON, the interpreter for programs.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import pair_runs  # noqa: E402

TRACES = pathlib.Path(__file__).resolve().parents[1] / "golden" / "traces"


def cli(*words, expect=0):
    done = subprocess.run([pair_runs.RFINJECT, *map(str, words)], capture_output=True, text=True, timeout=120)
    assert done.returncode == expect, done.stderr
    return done


class Pairs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="rfinject-advice-test-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.traces = pair_runs.run_all(
            [program for program in pair_runs.PAIRS if pair_runs.can_run(program)], pair_runs.GPU, cls.folder)

    def check(self, program):
        if not pair_runs.can_run(program):
            print(f"note: {program} is left out: it needs a torch for CUDA")
            self.skipTest("needs a torch for CUDA")
        pair = pair_runs.Pair(program, self.traces)
        self.assertEqual(pair.of_fault["state"], "holds", pair.of_fault)
        self.assertNotEqual(pair.of_mended["state"], "holds", pair.of_mended)
        self.assertLessEqual(abs(pair.error), pair_runs.TOLERANCE,
                             f"predicted {pair.predicted_ms} ms, won {pair.gain_ms} ms")


for name in pair_runs.PAIRS:
    setattr(Pairs, "test_" + re.sub(r"\W", "_", name), lambda self, name=name: self.check(name))


# What `rfinject try` has to make of the program with the fault, so that it does what the mended one does.
TRIED = {"optimizer-fused": "optimizer-fused", "optimizer-foreach": "optimizer-foreach", "tf32": "tf32", "autocast": "autocast",
         "autocast-convolutions": "autocast", "set-to-none": "set-to-none", "slow-loader": "loader-workers=8",
         "torch-compile": "compile"}
# GPU time is computed; the clock is that of this machine.
OF_GPU_TIME, OF_THE_CLOCK = 0.05, pair_runs.TOLERANCE


def check_tried(self, program):
    if not pair_runs.can_run(program):
        self.skipTest("needs a torch for CUDA")
    pair, by_clock = pair_runs.Pair(program, self.traces), program in pair_runs.BY_THE_CLOCK
    done = subprocess.run(
        [pair_runs.RFINJECT, "try", "--estimate", pair_runs.GPU, "--estimate-on",
         "virtual-gpu" if pair_runs.has_virtual_gpu() else "cpu", "--in-place", "--skip", "1", "--steps", "2", "--format", "json",
         TRIED[program], pair_runs.PYTHON, "-B", f"{program}.py", "fault"], cwd=pair_runs.HERE / "pairs", capture_output=True,
        text=True, timeout=pair_runs.TIMEOUT_S, env={**os.environ, "OMP_NUM_THREADS": "1", **pair_runs.compiling(self.folder)})
    self.assertEqual(done.returncode, 0, done.stderr)
    before, after = json.loads(done.stdout)["trials"]
    won_ms = ((before["clock_ns"] - after["clock_ns"]) if by_clock else after["won_ns"]) / 1e6
    self.assertLessEqual(abs(won_ms / pair.gain_ms - 1), OF_THE_CLOCK if by_clock else OF_GPU_TIME,
                         f"tried {won_ms} ms, the pair {pair.gain_ms} ms")


for name in TRIED:
    setattr(Pairs, "test_tried_" + re.sub(r"\W", "_", name), lambda self, name=name: check_tried(self, name))


class Rules(unittest.TestCase):
    def test_a_rule_has_a_pair_or_says_why_not_and_the_document_says_it(self):
        with_pair = {rule for rule, _, _ in pair_runs.PAIRS.values()}
        unproven = dict(pair_runs.unproven())
        document = pair_runs.DOCUMENT.read_text()
        rules = re.findall(r"(?m)^rule (\S+)$", pair_runs.RULES.read_text())
        self.assertGreater(len(rules), 10)
        for rule in rules:
            self.assertTrue(rule in with_pair or rule in unproven, rule)
            self.assertIn(f"| {rule} |" if rule in with_pair else f"* `{rule}`: {unproven[rule]}.", document)


class Command(unittest.TestCase):
    def test_text_names_gain_reason_remedy_and_link(self):
        text = cli("advise", TRACES / "est-resnet18.rfx", "--all").stdout
        self.assertTrue(text.startswith("ESTIMATED on"), text)
        for word in ("why: ", "do:  ", "see: https://"):
            self.assertIn(word, text)
        for line in text.splitlines():
            self.assertLessEqual(len(line), 80, line)

    def test_what_a_run_lacks_is_said(self):
        text = cli("advise", TRACES / "sim-GA100.rfx").stdout
        self.assertIn("Not known here", text)
        self.assertIn("fused-attention: only an estimate of the same program tells it", text)

    def test_mistakes(self):
        self.assertIn("there are csv, html, json, junit, markdown and table", cli("advise", "--format", "xml", expect=2).stderr)
        self.assertIn("--host-us", cli("advise", TRACES / "v100.rfx", "--host-us", "no", expect=2).stderr)
        cli("advise", "nothere", expect=1)

    def test_unproven_rules_are_printed_on_request_only(self):
        trace = TRACES / "v100.rfx"
        self.assertNotIn("cuda-graphs]", cli("advise", trace, "--host-us", "1000").stdout)
        self.assertIn("cuda-graphs]", cli("advise", trace, "--host-us", "1000", "--all").stdout)


if __name__ == "__main__":
    unittest.main()
