"""The other verbs of the command, and its help."""
import csv
import io
import json
import os
import pathlib
import re
import subprocess
import sys

from command import CliTest, OPTIONS, main

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import pseudo_terminal  # noqa: E402


class TopTest(CliTest):
    """What is printed without a terminal; integration_tests/terminal has the screen."""

    def rank(self, rank, frames):
        """A rank's trace in run/, with so many of its eleven frames."""
        whole = self.trace(f"rank:{rank}").read_bytes()
        end = 16
        for _ in range(frames):
            end += 16 + int.from_bytes(whole[end + 4:end + 8], "little")
        path = self.folder / "run" / f"{rank}.rfx"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(whole[:end])
        return path

    def test_it_agrees_with_the_report(self):
        trace = self.trace("measured")
        result = self.run_cli("top", "--once", "--rows", "0", trace)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertTrue(all(len(line) <= 80 for line in result.stdout.splitlines()))
        self.assertNotIn("\033", result.stdout)
        report = self.run_cli("report", trace, "--sort", "to win", "--rows", "0", "--wide").stdout

        def rows(text, first):
            table = text[text.index(first):]
            return [line.split()[0] for line in table[:table.index("\n  total ")].splitlines()[2:]]
        self.assertEqual(rows(result.stdout, "By layer"), rows(report, "By layer"))
        self.assertIn("Counters were armed in 5 of 10 steps", result.stdout)
        self.assertIn("of attainable", result.stdout)
        self.assertEqual(self.run_cli("top", trace).stdout, self.run_cli("top", "--once", trace).stdout)

    def test_rows(self):
        trace = self.trace("v100")
        for by in ("layer", "op", "kernel"):
            text = self.run_cli("top", "--once", "--by", by, "--rows", "3", trace).stdout
            self.assertIn(f"\nBy {by}, by what could be won, a step   (~ estimated)\n", text)
            self.assertEqual(len(re.findall("^~ ", text, re.MULTILINE)), 3 + 2)  # and the rest, and the total

    def test_a_job_as_it_is_written(self):
        self.rank(0, frames=4)
        other = self.rank(1, frames=4)
        result = self.run_cli("top", "--once", "run")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"^train.py: running for \d+ s\n")
        self.assertIn("\nRanks: 2, 2 writes\n", result.stdout)
        # Half a frame at the end is no damage; a wrong frame is.
        other.write_bytes(other.read_bytes()[:-5])
        result = self.run_cli("top", "--once", "run")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"\n +0 +writes .* 3 +10.0 ms")
        self.assertRegex(result.stdout, r"\n +1 +writes .* 2 +10.9 ms")
        os.utime(other, (other.stat().st_mtime - 60,) * 2)
        self.assertRegex(self.run_cli("top", "--once", "run").stdout, r"\nRank 1 has written nothing for 1 min \d+ s")
        damaged = bytearray(other.read_bytes())
        damaged[-20] ^= 1
        other.write_bytes(damaged + bytes(100))
        result = self.run_cli("top", "--once", "run")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, r"\nDamaged: run/1.rfx: byte \d+: ")
        for rank in range(2):
            self.rank(rank, frames=11)
        self.assertIn("train.py: ended; it began at ", self.run_cli("top", "--once", "run").stdout)

    def test_complaints(self):
        self.assert_complains(self.run_cli("top"), 2, "no trace is named, and there is no rfinject-out/ here")
        self.assert_complains(self.run_cli("top", "none"), 1, "none: no such file or folder")
        (self.folder / "empty").mkdir()
        self.assert_complains(self.run_cli("top", "empty"), 1, "empty: there are no traces")
        self.assert_complains(self.run_cli("top", "a", "b"), 2, "one folder or trace is wanted")
        self.assert_complains(self.run_cli("top", "--by", "phase", "a"), 2, "--by phase: there are layer, op and kernel")
        self.assert_complains(self.run_cli("top", "--rows", "x", "a"), 2, "--rows wants a number, not 'x'")
        self.assert_complains(self.run_cli("top", "--calibration", "none.csv", "a"), 1, "none.csv")
        result = self.run_cli("top", self.trace("garbage"))
        self.assertEqual((result.returncode, result.stderr), (1, ""))
        self.assertIn("not a trace of rfinject", result.stdout.replace("\n  ", " "))


class OtherVerbsTest(CliTest):
    def test_dump(self):
        result = self.run_cli("dump", self.trace("tiny"))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"(?m)^0000000016 chunk 0, \d+ bytes$")
        self.assertRegex(result.stdout, r'(?m)^\d{10}   name \{ id: 1 text: "aten::convolution" \}$')
        self.assertRegex(result.stdout, r"phase: PHASE_BACKWARD .*grid: \[1, 2, 3\]")
        self.assertRegex(result.stdout, r'end \{ reason: "exit" \}')

    def test_dump_of_damage(self):
        path = self.trace("tiny")
        path.write_bytes(path.read_bytes()[:-1])
        result = self.run_cli("dump", path)
        self.assertEqual(result.returncode, 1)
        self.assertIn("chunk 1", result.stdout)
        self.assertRegex(result.stderr, r"byte \d+: the file ends inside a frame")

    def test_gpus(self):
        text = self.run_cli("gpus").stdout
        self.assertRegex(text, r"(?m)^ *A100-SXM4-40GB +GA100 +9\.70 +19\.5 ")
        rows = list(csv.DictReader(io.StringIO(self.run_cli("gpus", "--format", "csv").stdout)))
        table = json.loads(self.run_cli("gpus", "--format", "json").stdout)["gpus"]
        self.assertEqual([r["gpu"] for r in rows], [g["gpu"] for g in table])
        a100 = next(g for g in table if g["gpu"] == "A100-SXM4-40GB")
        self.assertEqual((a100["peak_tf32_tc_flop_per_s"], a100["dram_bytes_per_s"]), (156e12, 1555e9))
        self.assertTrue(all(g["source"] for g in table))
        self.assert_complains(self.run_cli("gpus", "H10O-SXM5"), 2, "H100-SXM5-80GB")

    def test_explain(self):
        text = self.run_cli("explain", "r005").stdout
        self.assertRegex(text, r"^R005  Backward FLOP that the layers do not explain\n  checks ")
        self.assertNotIn("R006  ", text)
        ids = re.findall(r"(?m)^(R\d+)  ", self.run_cli("explain").stdout)
        self.assertEqual(ids, [f"R{i:03}" for i in range(1, 1 + len(ids))])
        self.assertIn("R005", ids)
        self.assert_complains(self.run_cli("explain", "R000"), 2, "'R000' is neither an alarm")
        self.assertRegex(self.run_cli("explain", "Bound").stdout, r"\Abound: What most of the time ")
        self.assertRegex(self.run_cli("explain", "MFU").stdout, r"\Amfu \(share of 1; ")
        self.assertRegex(self.run_cli("explain", "operational intensity", "R001").stdout, r"(?s)\AR001 .*\noi: ")
        for word in ("slack", "tier", "phase", "roof", "step", "launch"):
            self.assertIn(f"{word}: ", self.run_cli("explain", word).stdout)
        documents = pathlib.Path(__file__).resolve().parents[2] / "docs/reference"
        self.assertEqual(self.run_cli("explain", "--format", "markdown").stdout, (documents / "ALARMS.md").read_text())

    def test_explain_columns(self):
        """docs/reference/COLUMNS.md is what the table of columns says, and every column says something."""
        documents = pathlib.Path(__file__).resolve().parents[2] / "docs/reference"
        text = self.run_cli("explain", "columns", "--format", "markdown").stdout
        self.assertEqual(text, (documents / "COLUMNS.md").read_text())
        described = re.findall(r"(?m)^\| `(\w+)` \| [^|]+ \| (.*) \|$", text)
        self.assertFalse([name for name, meaning in described if len(meaning) < 10])
        self.assertRegex(self.run_cli("explain", "attainable_share").stdout, r"\Aattainable_share \(share of 1\): ")
        self.assert_complains(self.run_cli("explain", "no_column"), 2, "rfinject explain columns")

    def test_env(self):
        options = ["--estimate", "V100-SXM2-16GB", "-o", "traces/"]
        out = f"{self.folder}/traces/"
        shell = self.run_cli("env", *options).stdout
        script = shell + 'printf "%s|%s|%s|%s" "$LD_PRELOAD" "$CUDA_INJECTION64_PATH" "$RFINJECT_OUTPUT" "$RFINJECT_ESTIMATE"'
        result = subprocess.run(["sh", "-euc", script], env=self.environment, capture_output=True, text=True, timeout=60)
        self.assertEqual(result.stdout, f"{OPTIONS.library}|{OPTIONS.library}|{out}|V100-SXM2-16GB")
        result = subprocess.run(["sh", "-euc", script], capture_output=True, text=True, timeout=60,
                                env={**self.environment, "LD_PRELOAD": "libm.so.6", "CUDA_INJECTION64_PATH": "/x.so"})
        self.assertEqual(result.stdout, f"{OPTIONS.library}:libm.so.6|/x.so|{out}|V100-SXM2-16GB")
        variables = json.loads(self.run_cli("env", "--json", *options).stdout)
        self.assertEqual(variables["RFINJECT_OUTPUT"], out)
        self.assertEqual(variables["LD_PRELOAD"], OPTIONS.library)
        self.assertIn(f"-e LD_PRELOAD={OPTIONS.library}", self.run_cli("env", "--docker", *options).stdout)
        self.assertIn(f"--bind {out}", self.run_cli("env", "--apptainer", *options).stdout)
        self.assertIn(f"--export=ALL,LD_PRELOAD={OPTIONS.library},", self.run_cli("env", "--slurm", *options).stdout)
        self.assert_complains(self.run_cli("env", "--docker", "--slurm"), 2, "one of")

    def test_doctor_without_torch(self):
        python = self.folder / "python"
        python.write_text("#!/bin/sh\nexec " + sys.executable + ' -I -S "$@"\n')
        python.chmod(0o755)
        result = self.run_cli("doctor", "--python", python)
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"ok    library   {OPTIONS.library}", result.stdout)
        self.assertRegex(result.stdout, r"BAD   torch     this Python has none: .*torch")
        self.assertIn("mend it:", result.stdout)

    def test_doctor_without_library(self):
        result = self.run_cli("doctor", "--python", "/no/python", environment={"RFINJECT_LIBRARY": "/no/lib.so"})
        self.assertEqual(result.returncode, 1)
        self.assertIn("BAD   library   librfinject.so is not at /no/lib.so", result.stdout)

    def test_help_and_version(self):
        self.assertRegex(self.run_cli("--version").stdout, r"^rfinject \d+\.\d+\.\d+, trace format 3\.0\n$")
        text = self.run_cli("-h").stdout
        for verb in ("run", "report", "runs", "merge", "diff", "import", "dump", "advise", "explain", "gpus", "env", "doctor"):
            self.assertIn("  " + verb, text)
            help_text = self.run_cli(verb, "-h")
            self.assertEqual((help_text.returncode, help_text.stderr), (0, ""))
            self.assertIn("rfinject " + ("[run]" if verb == "run" else verb), help_text.stdout)
            self.assertTrue(all(len(line) <= 118 for line in help_text.stdout.splitlines()))
        nothing = self.run_cli()
        self.assertEqual((nothing.returncode, nothing.stdout), (2, ""))
        self.assertIn("report", nothing.stderr)

    def test_color_is_for_terminals_only(self):
        path = self.trace("v100")
        for no_color, colored in (("", True), ("1", False)):
            result = pseudo_terminal.run([OPTIONS.rfinject, "report", path], "stdout", 60, cwd=self.folder,
                                         env={**self.environment, "TERM": "xterm", "NO_COLOR": no_color})
            self.assertEqual(result.returncode, 0)
            self.assertEqual(b"\033[1m" in result.stdout, colored)


if __name__ == "__main__":
    main()
