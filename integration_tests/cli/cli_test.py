#!/usr/bin/env python3
"""The command as a user meets it: exit codes, messages, files.

    cli_test.py --rfinject BIN --make-trace BIN --library SO --asan-program BIN [unittest arguments]
"""
import argparse
import csv
import io
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import pseudo_terminal  # noqa: E402

OPTIONS = argparse.Namespace()


class CliTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="rfinject-cli-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.environment = {k: v for k, v in os.environ.items()
                            if not k.startswith("RFINJECT_") and k not in ("LD_PRELOAD", "CUDA_INJECTION64_PATH")}
        self.environment["RFINJECT_LIBRARY"] = OPTIONS.library
        # A command built with AddressSanitizer refuses to start after a preloaded library otherwise.
        self.environment["ASAN_OPTIONS"] = "verify_asan_link_order=0"

    def run_cli(self, *arguments, environment=None, **kwargs):
        return subprocess.run([OPTIONS.rfinject, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True,
                              env={**self.environment, **(environment or {})}, timeout=60, **kwargs)

    def trace(self, kind, name=None):
        path = self.folder / (name or kind.replace(":", "") + ".rfx")
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([OPTIONS.make_trace, kind, path], check=True)
        return path

    def assert_complains(self, result, code, *patterns):
        """One line on stderr that says what and why, nothing on stdout, and the exit code."""
        self.assertEqual(result.returncode, code, result.stderr)
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), 1, result.stderr)
        self.assertTrue(lines[0].startswith("rfinject"), lines[0])
        for pattern in patterns:
            self.assertRegex(lines[0], pattern)
        self.assertEqual(result.stdout, "")


class RunTest(CliTest):
    def test_exit_code_is_the_programs(self):
        for code in (0, 1, 7, 255):
            result = self.run_cli("sh", "-c", f"exit {code}")
            self.assertEqual(result.returncode, code)
            self.assertEqual(result.stdout + result.stderr, "")

    def test_signal_is_the_programs(self):
        for name in ("TERM", "KILL", "SEGV"):
            for options in ([], ["--report", "-q"]):
                result = self.run_cli(*options, "sh", "-c", f"kill -{name} $$")
                self.assertEqual(result.returncode, -getattr(signal, "SIG" + name), (name, options))

    def test_becomes_the_program(self):
        # No process of ours remains: the program has the process id that was started.
        process = subprocess.Popen([OPTIONS.rfinject, "sh", "-c", "echo $$"], cwd=self.folder, env=self.environment,
                                   stdout=subprocess.PIPE, text=True)
        output, _ = process.communicate(timeout=60)
        self.assertEqual(int(output), process.pid)

    def test_options_end_at_the_first_word(self):
        result = self.run_cli("-q", "printf", "%s,", "-o", "x", "--", "--steps", "-h")
        self.assertEqual((result.returncode, result.stdout), (0, "-o,x,--,--steps,-h,"))
        result = self.run_cli("run", "--", "printf", "%s,", "--version")
        self.assertEqual((result.returncode, result.stdout), (0, "--version,"))
        result = self.run_cli("--", "printf", "a")
        self.assertEqual((result.returncode, result.stdout), (0, "a"))

    def test_environment(self):
        script = 'echo "$LD_PRELOAD|$CUDA_INJECTION64_PATH|$RFINJECT_OUTPUT|$RFINJECT_ESTIMATE|$RFINJECT_STEPS' \
                 '|$RFINJECT_SKIP|$RFINJECT_KILL|$RFINJECT_OVERHEAD|$RFINJECT_LOG|$RFINJECT_MAX_SIZE"'
        result = self.run_cli("-o", "out/x.%p.rfx", "--estimate", "a100-sxm4-40gb", "--steps=5", "--skip", "2", "--kill",
                              "--overhead", "2.5", "-v", "--max-size", "64", "sh", "-c", script)
        self.assertEqual(result.stdout.strip(),
                         f"{OPTIONS.library}|{OPTIONS.library}|{self.folder}/out/x.%p.rfx|A100-SXM4-40GB|5|2|1|2.5|1|64")
        self.assertEqual(stat.S_IMODE((self.folder / "out").stat().st_mode), 0o700)
        self.assertIn("rfinject report", result.stderr)

    def test_what_the_user_has_set_stays(self):
        result = self.run_cli("sh", "-c", 'echo "$LD_PRELOAD|$CUDA_INJECTION64_PATH"',
                              environment={"LD_PRELOAD": OPTIONS.library + ":libm.so.6",
                                           "CUDA_INJECTION64_PATH": "/opt/other.so"})
        self.assertEqual(result.stdout.strip(), f"{OPTIONS.library}:libm.so.6|/opt/other.so")
        self.assertIn("/opt/other.so", result.stderr)
        result = self.run_cli("sh", "-c", 'echo "$LD_PRELOAD"', environment={"LD_PRELOAD": "libm.so.6"})
        self.assertEqual(result.stdout.strip(), f"{OPTIONS.library}:libm.so.6")

    def test_a_program_with_address_sanitizer(self):
        for options, seen in ((None, "verify_asan_link_order=0"),
                              ("detect_leaks=0", "detect_leaks=0:verify_asan_link_order=0"),
                              ("verify_asan_link_order=false", "verify_asan_link_order=false")):
            environment = {**self.environment, "ASAN_OPTIONS": options}
            if options is None:
                del environment["ASAN_OPTIONS"]
            result = subprocess.run([OPTIONS.rfinject, OPTIONS.asan_program], cwd=self.folder, capture_output=True,
                                    text=True, env=environment, timeout=60)
            self.assertEqual((result.returncode, result.stdout), (3, seen + "\n"), result.stderr)
        # No other program's environment is touched.
        del environment["ASAN_OPTIONS"]
        result = subprocess.run([OPTIONS.rfinject, "sh", "-c", "echo ${ASAN_OPTIONS-unset}"], cwd=self.folder,
                                capture_output=True, text=True, env=environment, timeout=60)
        self.assertEqual(result.stdout, "unset\n")

    def test_default_output(self):
        result = self.run_cli("sh", "-c", 'echo "$RFINJECT_OUTPUT"')
        self.assertRegex(result.stdout.strip(), rf"^{self.folder}/rfinject-out/\d{{8}}-\d{{6}}-sh-\d+/$")
        self.assertEqual(list((self.folder / "rfinject-out").iterdir()), [])  # one that does not train leaves nothing
        self.assertEqual(stat.S_IMODE((self.folder / "rfinject-out").stat().st_mode), 0o700)
        result = self.run_cli("sh", "-c", 'echo "$RFINJECT_OUTPUT|$RFINJECT_LATEST"', environment={"RFINJECT_OUTPUT": "mine/"})
        self.assertEqual(result.stdout.strip(), "mine/|")

    def test_processes_of_one_command_share_a_job(self):
        script = 'echo "$RFINJECT_JOB"; sh -c "echo \\$RFINJECT_JOB"'
        first, second = self.run_cli("sh", "-c", script).stdout.split()
        self.assertEqual(first, second)
        self.assertNotEqual(self.run_cli("sh", "-c", script).stdout.split()[0], first)
        self.assertEqual(self.run_cli("sh", "-c", script, environment={"RFINJECT_JOB": "a"}).stdout.split(), ["a", "a"])

    def test_percent_in_the_working_folder(self):
        odd = self.folder / "100%p"
        odd.mkdir()
        result = subprocess.run([OPTIONS.rfinject, "-o", "o/", "sh", "-c", 'echo "$RFINJECT_OUTPUT"'], cwd=odd,
                                capture_output=True, text=True, env=self.environment, timeout=60)
        self.assertEqual(result.stdout.strip(), f"{self.folder}/100%%p/o/")
        self.assertTrue((odd / "o").is_dir())

    def test_program_that_does_not_exist(self):
        self.assert_complains(self.run_cli("no-such-program"), 127, "no-such-program: no such program in PATH$")
        self.assert_complains(self.run_cli("./no/such"), 127, r"\./no/such: no such program$")
        self.assertFalse((self.folder / "rfinject-out").exists())

    def test_program_that_cannot_be_run(self):
        (self.folder / "text").write_text("hello")
        self.assert_complains(self.run_cli("./text"), 126, r"\./text: [Pp]ermission denied")

    def test_mistyped_verb(self):
        self.assert_complains(self.run_cli("reprot", "x"), 127, "did you mean 'rfinject report'")

    def test_a_trace_is_no_program(self):
        path = self.trace("tiny")
        self.assert_complains(self.run_cli(path), 126, "did you mean 'rfinject report .*tiny.rfx'")

    def test_unknown_gpu(self):
        self.assert_complains(self.run_cli("--estimate", "A100-SXM", "true"), 2,
                              "--estimate A100-SXM: no such GPU", "A100-SXM4-40GB", "rfinject gpus")
        self.assertNotIn("nearest", self.run_cli("--estimate", "foo", "true").stderr)

    def test_a_kind_of_gpu_means_the_commonest_board(self):
        result = self.run_cli("--estimate", "a100", "sh", "-c", "echo $RFINJECT_ESTIMATE")
        self.assertEqual((result.returncode, result.stdout), (0, "A100-SXM4-40GB\n"), result.stderr)
        self.assertIn("--estimate a100 is A100-SXM4-40GB", result.stderr)
        self.assertEqual(self.run_cli("-q", "--estimate", "a100", "true").stderr, "")
        self.assertIn("H100-SXM5-80GB", self.run_cli("gpus", "H100").stdout)

    def test_an_output_without_a_slash_is_a_folder(self):
        def output(name):
            return self.run_cli("-o", name, "sh", "-c", "echo $RFINJECT_OUTPUT").stdout.strip()
        self.assertEqual(output("new"), f"{self.folder}/new/")
        self.assertEqual(output("a/new"), f"{self.folder}/a/new/")
        self.assertEqual(output("new/t.rfx"), f"{self.folder}/new/t.rfx")
        self.assertEqual(output("new/t-%p"), f"{self.folder}/new/t-%p")
        (self.folder / "file").write_text("")
        self.assertEqual(output("file"), f"{self.folder}/file")

    def test_what_somebody_may_type_first(self):
        (self.folder / "train.py").write_text("")
        self.assert_complains(self.run_cli("train.py"), 127, "did you mean 'rfinject python train.py'")
        self.assert_complains(self.run_cli(""), 127, "the program's name is empty")
        self.assertEqual(self.run_cli("help").stdout, self.run_cli("-h").stdout)
        self.assertEqual(self.run_cli("help", "report").stdout, self.run_cli("report", "-h").stdout)
        self.assert_complains(self.run_cli("help", "reprot"), 2, "did you mean 'report'")
        self.assertEqual(self.run_cli("version").stdout, self.run_cli("--version").stdout)

    def test_other_profilers_own_files(self):
        (self.folder / "run.nsys-rep").write_text("")
        for arguments in (["report", "run.nsys-rep"], ["import", "nsys", "run.nsys-rep", "-o", "t.rfx"]):
            self.assert_complains(self.run_cli(*arguments), 1, "nsys export --type sqlite run.nsys-rep",
                                  "rfinject import nsys run.sqlite")
        self.assert_complains(self.run_cli("report", "run.ncu-rep"), 1, "ncu --import run.ncu-rep --csv")

    def test_output_that_cannot_be_written(self):
        (self.folder / "file").write_text("")
        self.assert_complains(self.run_cli("-o", "file/x/", "true"), 2, "output cannot be written", "file")
        self.assert_complains(self.run_cli("-o", "/proc/x/", "true"), 2, "output cannot be written: /proc/x")
        # The trace would lie beside these, where nobody looks for it.
        os.mkfifo(self.folder / "pipe")
        (self.folder / "link.rfx").symlink_to("nowhere")
        (self.folder / "folder").mkdir()
        (self.folder / "link").symlink_to("folder")
        self.assert_complains(self.run_cli("-o", "./pipe", "true"), 2, "pipe: is a pipe")
        self.assert_complains(self.run_cli("-o", "link.rfx", "true"), 2, "link.rfx: is a link")
        self.assert_complains(self.run_cli("-o", "/dev/null", "true"), 2, "/dev/null: is a device")
        self.assertEqual(self.run_cli("-o", "./link", "true").returncode, 0)
        self.assertEqual(list((self.folder / "folder").iterdir()), [])
        (self.folder / "lost").symlink_to("nowhere")
        self.assert_complains(self.run_cli("-o", "lost", "true"), 2, "lost: is a link")
        self.assert_complains(self.run_cli("env", "-o", "lost"), 2, "lost: is a link")
        self.assertFalse((self.folder / "nowhere").exists())

    def test_an_output_that_is_there_stays_and_that_is_said(self):
        (self.folder / "t.rfx").write_text("of an earlier run")
        self.assert_complains(self.run_cli("-o", "t.rfx", "true"), 0, "t.rfx is there and stays", "a number beside it")
        self.assertEqual(self.run_cli("-q", "-o", "t.rfx", "true").stderr, "")
        self.assertEqual(self.run_cli("-o", "new.rfx", "true").stderr, "")

    def test_what_an_older_trace_does_not_know(self):
        # These traces are from before there were lines, or from a program whose allocator nobody watched.
        path = self.trace("measured")
        lines = self.run_cli("report", path, "--by", "source", "--format", "json")
        self.assertEqual(lines.returncode, 0)
        self.assertIn("--by source: the trace names no line of the program", lines.stderr)
        rows = json.loads(lines.stdout)["rows"]
        self.assertEqual({row["line"] for row in rows}, {None})
        self.assertEqual(len({row["phase"] for row in rows}), len(rows))
        memory = self.run_cli("report", path, "--by", "memory")
        self.assertEqual((memory.returncode, memory.stderr), (0, ""))
        text = " ".join(memory.stdout.split())
        self.assertIn("is not known", text)
        self.assertIn("46.8 MB (0.04 GiB) of parameters must fit, and in training 46.8 MB of gradients", text)
        self.assertIn("93.5 MB for Adam", text)
        self.assertIn("rfinject --estimate GPU PROGRAM", text)
        self.assertEqual(self.run_cli("report", path, "--by", "memory", "-o", "out").returncode, 0)
        again = self.run_cli("report", path, "--by", "memory", "-o", "out")
        self.assertEqual((again.returncode, again.stderr), (0, ""), "what rfinject wrote it may replace")
        picture = self.run_cli("report", path, "--by", "memory", "--format", "svg")
        self.assertEqual(picture.returncode, 2)
        self.assertIn("--format svg: what is shown has no picture", picture.stderr)

    def test_mistakes_in_options(self):
        for arguments, pattern in [
            (["--stpes", "3", "true"], "no option --stpes; did you mean --steps"),
            (["--steps", "x", "true"], "--steps wants a number of steps, not 'x'"),
            (["--steps", "-1", "true"], "not '-1'"),
            (["--overhead", "150", "true"], "--overhead wants a percentage"),
            (["--max-size", "64M", "true"], "--max-size wants a number of MB, not '64M'"),
            (["--ranks", "0,x", "true"], "--ranks wants all, or ranks like 0,3, not '0,x'"),
            (["--ranks", "", "true"], "--ranks is empty; it wants WHICH"),
            (["-o", "", "true"], "--output is empty; it wants PATH"),
            (["--kill", "true"], "--kill ends the program after --steps"),
            (["-q", "-v", "true"], "exclude each other"),
            (["--kill=1", "true"], "--kill takes no value"),
            (["--virtual-gpus", "2", "true"], "--virtual-gpus goes with --estimate GPU"),
            (["-o"], "-o wants a value: PATH"),
            (["-z", "true"], "no option -z"),
            (["run"], "no program is named"),
        ]:
            self.assert_complains(self.run_cli(*arguments), 2, re.escape(pattern) if "(" not in pattern else pattern)

    def test_virtual_gpus_with_an_estimate_or_by_default(self):
        for words, variables in ((["--estimate", "V100-SXM2-16GB", "--virtual-gpus", "2", "true"], {}),
                                 (["--virtual-gpus", "2", "true"], {"RFINJECT_ESTIMATE": "V100-SXM2-16GB"})):
            self.assertEqual(self.run_cli(*words, environment=variables).returncode, 0)
        defaults = self.folder / "defaults.toml"
        defaults.write_text('[run]\nvirtual-gpus = 2\n')
        self.assertEqual(self.run_cli("true", environment={"RFINJECT_CONFIG": str(defaults)}).returncode, 0)

    def test_library_that_is_not_there(self):
        self.assert_complains(self.run_cli("true", environment={"RFINJECT_LIBRARY": "/no/lib.so"}), 2,
                              "librfinject.so is not at /no/lib.so")

    def test_report_at_the_end(self):
        source = self.trace("a100")
        result = self.run_cli("--report", "-o", "out/", "sh", "-c", f'echo hi; cp {source} "$RFINJECT_OUTPUT/"; exit 3')
        self.assertEqual(result.returncode, 3)
        self.assertEqual(result.stdout, "hi\n")  # the table is on stderr
        self.assertIn("ESTIMATED on A100-SXM4-40GB", result.stderr)
        self.assertIn("rfinject report", result.stderr.splitlines()[-1])
        # A trace of an earlier run in the folder is no part of the report.
        result = self.run_cli("--report", "-o", "out/", "true")
        self.assertIn("no trace was written below", result.stderr)
        # What is gone was not absent from the beginning.
        result = self.run_cli("--report", "-o", "out/", "sh", "-c", "rm -r out")
        self.assertRegex(result.stderr, "no trace is left: .*/out/ was removed while the program ran")

    def test_report_forwards_signals(self):
        script = "trap 'echo got; exit 5' USR1; echo ready; while :; do sleep 0.05; done"
        process = subprocess.Popen([OPTIONS.rfinject, "--report", "-q", "sh", "-c", script], cwd=self.folder,
                                   env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.send_signal(signal.SIGUSR1)
        output, _ = process.communicate(timeout=60)
        self.assertEqual((output, process.returncode), ("got\n", 5))


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


class ReportTest(CliTest):
    def test_table(self):
        result = self.run_cli("report", self.trace("v100"))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("ESTIMATED on V100-SXM2-16GB", result.stdout.splitlines()[0])
        self.assertIn("layer1.0.conv1", result.stdout)
        self.assertTrue(all(len(line) <= 80 for line in result.stdout.splitlines()))
        self.assertNotIn("\033", result.stdout)

    def test_every_line_of_an_estimate_says_so(self):
        text = self.run_cli("report", self.trace("v100"), "--rows", "0").stdout
        rows = [line for line in text[text.index("By layer"):text.index("What these numbers rest on")].splitlines()
                if re.search(r"\d %\s", line)]
        self.assertGreater(len(rows), 60)
        for line in rows:
            self.assertTrue(line.startswith("~ "), line)
        text = self.run_cli("report", self.trace("measured"), "--rows", "0").stdout
        self.assertNotIn("~", text)

    def test_json(self):
        result = self.run_cli("report", self.trace("v100"), "--format", "json", "--by", "layer")
        report = json.loads(result.stdout)
        self.assertEqual(report["schema"], "rfinject.report/1")
        self.assertEqual((report["source"], report["steps"]), ("estimated", 10))
        for key in ("device", "summary", "alarms", "rows"):
            self.assertIn(key, report)
        forward = sum(r["model_flop"] for r in report["layer_phases"] if r["phase"] == "forward")
        backward = sum(r["model_flop"] for r in report["layer_phases"] if r["phase"] == "backward")
        images = 8 * report["steps"]
        self.assertEqual((forward, backward), (3628146688 * images, 7020265472 * images))
        for row in report["rows"]:
            self.assertEqual(row["source"], "estimated")
            for key in ("model", "layer", "launches", "time_ns", "flop", "model_flop", "dram_bytes", "oi_flop_per_byte",
                        "performance_flop_per_s", "attainable_flop_per_s"):
                self.assertIn(key, row)
        # Ratios follow from the sums beside them.
        row = next(r for r in report["rows"] if r["layer"] == "layer1.0.conv1")
        self.assertAlmostEqual(row["oi_flop_per_byte"], row["flop"] / row["dram_bytes"])
        self.assertAlmostEqual(row["performance_flop_per_s"] / (row["flop"] / row["time_ns"] * 1e9), 1)
        self.assertAlmostEqual(row["attainable_flop_per_s"] / (row["flop"] / row["least_time_ns"] * 1e9), 1)

    def test_a_run_that_measured_nothing(self):
        trace = self.trace("nothing")
        why = "nothing was measured: no driver is here (rfinject --estimate GPU)"
        for by in ("layer", "phase", "kernel", "model"):
            self.assert_complains(self.run_cli("report", trace, "--by", by), 1, re.escape(why))
        self.assert_complains(self.run_cli("advise", trace), 1, re.escape(why))
        # What programs read is as it was.
        result = self.run_cli("report", trace, "--format", "json")
        self.assertEqual((result.returncode, result.stderr), (1, f"rfinject: {why}\n"))
        self.assertEqual(json.loads(result.stdout)["summary"]["launches"], 0)
        # Beside a run that has something it is a line.
        both = self.run_cli("report", trace, self.trace("v100"))
        self.assertEqual((both.returncode, both.stderr), (0, ""))
        self.assertEqual(" ".join(both.stdout.split("ESTIMATED")[0].split()), "N" + why[1:])
        # By the clock something is known, and of memory what the models say.
        for by in ("wait", "memory"):
            self.assertEqual(self.run_cli("report", trace, "--by", by).returncode, 0)
        result = self.run_cli("--report", "-o", "out/", "sh", "-c", f'cp {trace} "$RFINJECT_OUTPUT/"')
        self.assertEqual((result.returncode, result.stderr), (0, f"rfinject: {why}\n"))

    def test_theory_that_is_not_there(self):
        result = self.run_cli("report", self.trace("measured"), "--theory", "estimate/")
        self.assert_complains(result, 1, "--theory estimate/: there is no such file or folder; `rfinject --estimate GPU -o estimate/")

    def test_json_of_several_runs(self):
        report = json.loads(self.run_cli("report", self.trace("v100"), self.trace("a100"), "--format=json").stdout)
        self.assertEqual(report["schema"], "rfinject.reports/1")
        self.assertEqual([r["estimated_gpu"] for r in report["reports"]], ["V100-SXM2-16GB", "A100-SXM4-40GB"])

    def test_csv_has_the_numbers_of_json(self):
        path = self.trace("measured")
        for by in ("model", "phase", "layer", "op", "kernel"):
            rows = json.loads(self.run_cli("report", path, "--by", by, "--format", "json").stdout)["rows"]
            text = self.run_cli("report", path, "--by", by, "--format", "csv").stdout
            lines = [line for line in csv.DictReader(io.StringIO(text)) if line["record"] == "row"]
            self.assertEqual(len(rows), len(lines))
            for row, line in zip(rows, lines):
                for key, value in row.items():
                    self.assertIn(key, line)
                    if value is None:
                        self.assertEqual(line[key], "", key)
                    elif isinstance(value, str):
                        self.assertEqual(line[key], value)
                    else:
                        self.assertEqual(float(line[key]), value, key)

    def test_rows_add_up_in_every_fold(self):
        path = self.trace("measured")
        totals = set()
        for by in ("model", "phase", "layer", "op", "kernel"):
            report = json.loads(self.run_cli("report", path, "--by", by, "--format", "json").stdout)
            totals.add(tuple(round(sum(r[k] for r in report["rows"])) for k in ("launches", "time_ns", "flop", "dram_bytes")))
        self.assertEqual(len(totals), 1)

    def test_output_file(self):
        path = self.trace("v100")
        for ending, begins in (("html", "<!"), ("svg", "<?xml"), ("json", "{"), ("csv", "record,"), ("txt", "ESTIMATED")):
            out = self.folder / ("report." + ending)
            result = self.run_cli("report", path, "-o", out)
            self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
            self.assertTrue(out.read_text().lower().startswith(begins.lower()), ending)
            self.assertEqual(stat.S_IMODE(out.stat().st_mode), 0o600)
        self.assertEqual(self.run_cli("report", path, "--format", "csv", "-o", "-").stdout[:7], "record,")

    def test_output_is_not_written_through_links(self):
        path = self.trace("v100")
        target = self.folder / "precious"
        target.write_text("precious")
        (self.folder / "link").symlink_to(target)
        self.assert_complains(self.run_cli("report", path, "-o", "link"), 1, "link: cannot be written: is a symbolic link")
        self.assertEqual(target.read_text(), "precious")

    def test_output_that_cannot_be_written(self):
        path = self.trace("v100")
        self.assert_complains(self.run_cli("report", path, "-o", "no/such/folder/x.csv"), 1, "cannot be written: No such")
        self.assert_complains(self.run_cli("report", path, "-o", self.folder), 1, "is a folder")
        if os.path.exists("/dev/full"):
            self.assert_complains(self.run_cli("report", path, "-o", "/dev/full"), 1, "/dev/full: cannot be written: No space")

    def test_a_failure_leaves_the_old_output_and_no_litter(self):
        (self.folder / "out.csv").write_text("old")
        self.run_cli("report", "nowhere", "-o", "out.csv")
        self.assertEqual((self.folder / "out.csv").read_text(), "old")
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["out.csv"])

    def test_folder(self):
        self.trace("process:1", "runs/a/one.rfx")
        self.trace("process:2", "runs/b/two.rfx")
        result = self.run_cli("report", "runs", "--format", "json")
        report = json.loads(result.stdout)
        self.assertEqual((report["process_count"], report["steps"]), (1, 1))
        self.assertRegex(result.stderr, r"^rfinject: runs: the newest of 2 runs, .*`rfinject runs runs` lists them\n$")
        report = json.loads(self.run_cli("report", "runs/a/one.rfx", "runs/b/two.rfx", "--format", "json").stdout)
        self.assertEqual([r["steps"] for r in report["reports"]], [1, 1])
        sweep = json.loads(self.run_cli("report", "runs", "--by", "run", "--format", "json").stdout)
        self.assertEqual([r["steps"] for r in sweep["runs"]], [1, 1])
        self.run_cli("merge", "runs", "-o", "all.rfx")
        report = json.loads(self.run_cli("report", "all.rfx", "--format", "json").stdout)
        self.assertEqual((report["process_count"], report["steps"]), (2, 2))

    def test_without_a_path_it_is_the_latest_run(self):
        self.assert_complains(self.run_cli("report"), 2, "no trace is named, and there is no rfinject-out/ here")
        self.trace("v100", "rfinject-out/one/t.rfx")
        self.trace("a100", "rfinject-out/two/t.rfx")
        for run, gpu in (("one", "V100-SXM2-16GB"), ("two", "A100-SXM4-40GB")):
            link = self.folder / "rfinject-out/latest"
            link.unlink(missing_ok=True)
            link.symlink_to(run)
            result = self.run_cli("report", "--format", "json")
            self.assertEqual(json.loads(result.stdout)["estimated_gpu"], gpu)
            self.assertEqual(result.stderr, f"rfinject: rfinject-out/{run}/\n")
            self.assertIn("name {", self.run_cli("dump").stdout)
        # A link that leads elsewhere is not followed.
        secret = self.trace("v100", "elsewhere/t.rfx").parent
        link.unlink()
        link.symlink_to(secret)
        self.assertIn("the newest of 2 runs", self.run_cli("report").stderr)
        result = self.run_cli("diff", "--format", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, r"rfinject-out/one/t.rfx against rfinject-out/two/t.rfx")

    def test_runs(self):
        self.trace("v100", "rfinject-out/one/t.rfx")
        self.trace("measured", "rfinject-out/two/t.rfx")
        self.assert_complains(self.run_cli("runs", "nowhere"), 1, "nowhere: no such file or folder")
        rows = json.loads(self.run_cli("runs", "--format", "json").stdout)["runs"]
        self.assertEqual({(r["path"], r["steps"], r["ranks"]) for r in rows},
                         {("rfinject-out/one/", 10, 1), ("rfinject-out/two/", rows[1]["steps"], 1)})
        lines = list(csv.DictReader(io.StringIO(self.run_cli("runs", "--format", "csv").stdout)))
        self.assertEqual([line["path"] for line in lines], [r["path"] for r in rows])
        text = self.run_cli("runs").stdout
        self.assertIn("rfinject-out/one/", text)
        self.assertRegex(text.splitlines()[0], "GPU .*ranks +steps +GPU a step +command +traces")
        self.assert_complains(self.run_cli("runs", "--format", "xml"), 2, "there are csv, html, json, junit, latex, markdown and table")

    def test_bad_input(self):
        (self.folder / "empty-folder").mkdir()
        (self.folder / "empty.rfx").write_bytes(b"")
        self.trace("newer")
        self.trace("garbage")
        for name, *patterns in [
            ("nowhere.rfx", "nowhere.rfx: no such file or folder$"),
            ("empty-folder", r"empty-folder: there are no traces \(\*\.rfx\) in this folder; 'rfinject PROGRAM' writes them$"),
            ("empty.rfx", "empty.rfx: byte 0: the file is empty$"),
            ("newer.rfx", "newer.rfx: byte 8: written in format 9", "use a newer rfinject$"),
            ("garbage.rfx", "garbage.rfx: byte 0: not a trace of rfinject$"),
        ]:
            for verb in (["report"], ["merge", "-o", "out.rfx"]):
                self.assert_complains(self.run_cli(*verb, name), 1, *patterns)
        os.mkfifo(self.folder / "fifo")
        self.assert_complains(self.run_cli("report", "fifo"), 1, "fifo: cannot be read: not a regular file")
        if os.geteuid() != 0:
            path = self.trace("tiny", "secret.rfx")
            path.chmod(0)
            self.assert_complains(self.run_cli("report", path), 1, "secret.rfx: cannot be read: Permission denied")

    def test_damage_is_named_and_what_is_before_it_used(self):
        whole = self.trace("tiny").read_bytes()
        cut = self.folder / "cut.rfx"
        cut.write_bytes(whole[:-5])
        result = self.run_cli("report", cut, "--format", "json")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"cut\.rfx: byte \d+: the file ends inside a frame .*; the 2 chunks before it are used")
        self.assertEqual(json.loads(result.stdout)["steps"], 1)
        flipped = bytearray(whole)
        flipped[-3] ^= 1
        cut.write_bytes(flipped)
        result = self.run_cli("report", cut)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"cut\.rfx: byte \d+: a frame is damaged \(checksum\)")

    def test_cut_at_every_byte(self):
        whole = self.trace("tiny").read_bytes()
        path = self.folder / "cut.rfx"
        complete = 0
        # trace_test does it in memory; with sanitizers a process costs a tenth of a second.
        for size in range(0, len(whole), 17 if OPTIONS.sanitized else 1):
            path.write_bytes(whole[:size])
            result = self.run_cli("report", path, "--format", "csv")
            self.assertIn(result.returncode, (0, 1), size)
            if result.returncode == 0 or "no step has ended yet" in result.stderr:
                complete += 1  # cut between two frames
            else:
                self.assertRegex(result.stderr, r"^rfinject: .*cut\.rfx: byte \d+: [^\n]+\n$", size)
        if not OPTIONS.sanitized:
            self.assertEqual(complete, 2)

    def test_one_bad_file_does_not_hide_the_good_ones(self):
        self.trace("v100", "runs/good.rfx")
        self.trace("garbage", "runs/bad.rfx")
        result = self.run_cli("report", "runs", "--format", "json")
        self.assertEqual(result.returncode, 1)
        self.assertIn("bad.rfx", result.stderr)
        self.assertEqual(json.loads(result.stdout)["steps"], 10)

    def test_mistakes_in_options(self):
        path = self.trace("tiny")
        for arguments, pattern in [
            ([path, "--by", "color"], "--by color: there are run, model, phase, layer, class, op, kernel, precision, source, stack, memory, wait and rank"),
            ([path, "--format", "pdf"], "--format pdf: there are csv, html, json, junit, latex, markdown, svg and table"),
            ([path, "--rows", "many"], "--rows wants a number, not 'many'"),
            ([path, "--fromat", "csv"], "did you mean --format"),
            ([path, "--roofs", "clocks"], "--roofs 'clocks': there are datasheet, clock, empirical and all"),
            ([path, "--roof", "dram=fast"], "--roof 'dram=fast': wanted is a number with an SI prefix"),
            ([path, "-o", ""], "--output is empty; it wants FILE"),
            ([path, "--theory="], "--theory is empty; it wants TRACE"),
            ([""], "an argument is empty"),
        ]:
            self.assert_complains(self.run_cli("report", *arguments), 2, re.escape(pattern))

    def imported(self, kernels, gpu="H100-SXM5-80GB", capability="9.0"):
        """A trace of an ncu table: a launch each of {kernel: {metric: value}}. `gpu` None: known by its capability."""
        metrics = sorted({metric for values in kernels.values() for metric in values})
        units = ["ns" if "time" in m else "byte" if "bytes" in m else "inst" for m in metrics]
        path = self.folder / "made.csv"
        with open(path, "w", newline="") as file:
            table = csv.writer(file, quoting=csv.QUOTE_ALL)
            table.writerow(["ID", "Process ID", "Process Name", "Kernel Name", "Block Size", "Grid Size", "Device", "CC",
                            *metrics])
            table.writerow([""] * 8 + units)
            for i, (kernel, values) in enumerate(kernels.items()):
                table.writerow([i, 7, "python", kernel, "(128, 1, 1)", "(64, 1, 1)", 0, capability,
                                *(values.get(metric, 0) for metric in metrics)])
        trace = self.folder / "made.rfx"
        result = self.run_cli("import", "ncu", path, *(["--gpu", gpu] if gpu else []), "--model", "Net", "-o", trace)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return trace

    def test_counters_of_geforces_blackwell_are_known_and_count_once(self):
        counted = {"gpu__time_duration.sum": 1_000_000, "dram__bytes_op_read.sum": 3 * 10**8,
                   "dram__bytes_op_write.sum": 10**8, self.HMMA: 7 * 10**11}
        for total in ({}, {"dram__bytes.sum": 4 * 10**8}):
            trace = self.imported({"k": {**counted, **total}}, None, "12.0")
            report = json.loads(self.run_cli("report", trace, "--format", "json").stdout)
            self.assertEqual(report["rows"][0]["dram_bytes"], 4 * 10**8)
            self.assertEqual(report["rows"][0]["flop_bf16_tc"], 7 * 10**11)

    HMMA = "sm__ops_path_tensor_op_hmma_src_bf16_dst_fp32_sparsity_off.sum"
    HGMMA = "sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32_sparsity_off.sum"

    def test_a_point_above_its_roof_is_said_everywhere(self):
        kernel = {"gpu__time_duration.sum": 1_000_000, "dram__bytes_read.sum": 10**9, "dram__bytes_write.sum": 0}
        # The same FLOP/s: possible over wgmma (989 TFLOP/s), impossible over mma.sync (660 TFLOP/s).
        below = self.imported({"k": {**kernel, self.HGMMA: 8 * 10**11}})
        result = self.run_cli("report", below, "--strict")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertNotIn("R001", result.stdout)
        for form in ("svg", "html"):
            text = self.run_cli("report", below, "--format", form).stdout
            self.assertNotIn("R001", re.sub(r"(?s)<style>.*?</style>|<script>.*?</script>", "", text), form)

        above = self.imported({"k": {**kernel, self.HMMA: 8 * 10**11}})
        result = self.run_cli("report", above, "--strict")
        self.assertEqual(result.returncode, 3, result.stdout)
        self.assertRegex(result.stdout, r"R001.*1\.21 times faster than its roof allows")
        self.assertEqual(self.run_cli("report", above).returncode, 0)
        for form in ("svg", "html"):
            result = self.run_cli("report", above, "--format", form, "--strict")
            self.assertEqual(result.returncode, 3, form)
            self.assertRegex(result.stdout, r"<text[^>]*>[^<]*R001</text>", form)  # the label at the point
            self.assertRegex(result.stdout, r'<path class="m [^"]*\bbad\b', form)   # its red ring
        alarms = json.loads(self.run_cli("report", above, "--format", "json").stdout)["alarms"]
        self.assertEqual([alarm["id"] for alarm in alarms], ["R001", "R003"])

    def test_strict_about_some(self):
        kernel = {"gpu__time_duration.sum": 1_000_000, "dram__bytes_read.sum": 10**9, "dram__bytes_write.sum": 0}
        above = self.imported({"k": {**kernel, self.HMMA: 8 * 10**11}})  # R001 and R003
        for ids, code in (("R001", 3), ("r003,R012", 3), ("R002", 0), ("R004,R005", 0)):
            self.assertEqual(self.run_cli("report", above, f"--strict={ids}").returncode, code, ids)
        self.assertEqual(self.run_cli("report", "--strict", above).returncode, 3)  # the trace is no list
        for ids in ("R013", "R001,x", "R1"):
            self.assert_complains(self.run_cli("report", above, f"--strict={ids}"), 2, f"--strict={ids}: there are R001 to R012")

    def test_roofs_of_every_kind_are_named_and_kept_apart(self):
        trace = self.imported({"k": {"gpu__time_duration.sum": 1_000_000, "gpc__cycles_elapsed.max": 1_500_000,
                                     "dram__bytes_read.sum": 10**9, "lts__t_bytes.sum": 2 * 10**9,
                                     "l1tex__t_bytes.sum": 3 * 10**9, self.HGMMA: 10**11, self.HMMA: 10**11}})

        def roofs(*options):
            report = json.loads(self.run_cli("report", trace, "--format", "json", *options).stdout)
            lines = csv.DictReader(io.StringIO(self.run_cli("report", trace, "--format", "csv", *options).stdout))
            in_csv = [line for line in lines if line["record"] == "roof"]
            self.assertEqual(len(in_csv), len(report["roofs"]))
            for roof, line in zip(report["roofs"], in_csv):
                self.assertEqual(line["roof_kind"], roof["kind"])
                self.assertEqual(line["roof_path"], roof["path"] or "")
                self.assertEqual(line["roof_precision"], roof["precision"] or "")
                for key, column in (("peak_flop_per_s", "roof_peak_flop_per_s"), ("bytes_per_s", "roof_bytes_per_s")):
                    self.assertEqual(float(line[column] or 0), roof[key] or 0)
            return report, {(r["kind"], r["level"], r["precision"], r["path"]): r for r in report["roofs"]}

        report, found = roofs()
        self.assertEqual({key[0] for key in found}, {"datasheet"})
        self.assertEqual(found["datasheet", "DRAM", "bf16_tc", "mma"]["peak_flop_per_s"], 659.6e12)
        self.assertEqual(found["datasheet", "DRAM", "bf16_tc", "wgmma"]["peak_flop_per_s"], 989.4e12)
        self.assertIn(("datasheet", "L1", None, None), found)
        self.assertEqual(report["device"]["sm_clock_hz"], 1.5e9)
        self.assertAlmostEqual(report["rows"][0]["oi_l2_flop_per_byte"], 100)
        self.assertEqual(report["rows"][0]["flop_mma_tc"], 10**11)
        self.assertEqual(report["rows"][0]["gpu_cycles"], 1_500_000)
        self.assertEqual(report["rows"][0]["gpu_clock_hz"], 1.5e9)
        _, found = roofs("--roofs", "clock,empirical", "--roof", "l2=7T,dram=3.1TB/s")
        self.assertEqual({key[0] for key in found}, {"measured clock", "empirical"})
        self.assertEqual(found["empirical", "L2", None, None]["bytes_per_s"], 7e12)
        self.assertEqual(found["empirical", "DRAM", "bf16_tc", None]["bytes_per_s"], 3.1e12)
        self.assertAlmostEqual(found["measured clock", "DRAM", "bf16_tc", "wgmma"]["peak_flop_per_s"],
                               989.4e12 * 1500 / 1830, delta=1e12)
        picture = self.run_cli("report", trace, "--format", "svg", "--roofs", "all", "--roof", "l2=7T").stdout
        for text in ("(mma), 659.6", "(wgmma), 989.4", "measured clock", "empirical", "L2 7.00 TB/s", "L1 33.5 TB/s"):
            self.assertIn(text, picture)

    def test_roofs_that_nobody_knows_are_said(self):
        result = self.run_cli("report", self.trace("a100"), "--roofs", "clock", "--rows", "1")
        self.assertEqual(result.returncode, 0)
        self.assertIn("holds no SM clock", result.stderr)
        result = self.run_cli("report", self.trace("v100"), "--roofs", "empirical", "--rows", "1")
        self.assertEqual(result.stderr, "")

    def test_names_that_would_steer_the_terminal(self):
        path = self.trace("hostile")
        for by in ("layer", "kernel", "op"):
            text = self.run_cli("report", path, "--by", by).stdout
            self.assertNotIn("\033", text)
            self.assertNotIn("\x9b", text)
        json.loads(self.run_cli("report", path, "--format", "json", "--by", "kernel").stdout)
        rows = list(csv.reader(io.StringIO(self.run_cli("report", path, "--format", "csv", "--by", "kernel").stdout)))
        self.assertEqual({len(row) for row in rows}, {len(rows[0])})


    def test_a_name_is_no_formula_in_a_spreadsheet(self):
        path = self.trace("formulas")
        for verb in (["report", path, "--by", "kernel"], ["diff", path, path, "--by", "op"]):
            cells, exact = ({cell for row in self.csv_rows(*verb, *raw) for cell in row} for raw in ([], ["--raw"]))
            for cell in cells:
                try:
                    float(cell)
                except ValueError:
                    self.assertNotRegex(cell, r"^\s*[=+\-@＝＋－＠]|^[\t\r\n]")
            for name in ("=1+1", "-2+3", "@SUM(1)", "\t=1", "\r=1", " =1", '=a,"b"', "＝1"):
                self.assertTrue("'" + name in cells, name)
                self.assertTrue(name in exact and "'" + name not in exact, name)
            self.assertTrue({"a=1", "'=1"} <= cells)  # nothing else is touched
        names = {row["kernel"] for row in json.loads(
            self.run_cli("report", path, "--by", "kernel", "--format", "json").stdout)["rows"]}
        self.assertLessEqual({"=1+1", "\t=1", "\r=1"}, names)
        self.assert_complains(self.run_cli("report", path, "--raw", "--format", "json"), 2, "--raw goes with --format csv")

    def csv_rows(self, *words):
        """By way of a file: a pipe read as text would lose carriage returns."""
        path = self.folder / "rows.csv"
        path.unlink(missing_ok=True)
        self.assertEqual(self.run_cli(*words, "-o", path).returncode, 0)
        with open(path, newline="", encoding="utf-8") as file:
            return list(csv.reader(file))

    # These are ESC, CSI of C1 both as UTF-8 and as the bare byte, OSC, backspace, right-to-left override and the
    # like, and a character of zero width.
    STEERING = "a\033[2Jb\033]0;t\007c\x08d\u009b31me\u202ef\u2066g\u200bh\U000e0041i"
    STEERS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e0fff]")

    def test_no_message_steers_the_terminal(self):
        name = self.STEERING
        binary = self.folder / (name + ".rfx")
        binary.write_bytes(b"x" * 100)
        ncu = self.folder / "bad.csv"
        ncu.write_text(f'"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n"0","{name}","dram__bytes_read.sum","{name}","1"\n')
        for words in (["report", binary], ["report", name], ["dump", binary], ["merge", name, "-o", name], [name],
                      ["report", "--" + name, "x"], ["gpus", name], ["report", "x", "--by", name], ["import", "ncu", ncu, "-o", "o"],
                      ["import", "ncu", name, "-o", name + "/" + name], ["report", binary, "-o", name + "/" + name]):
            result = self.run_cli(*words)
            self.assertNotEqual(result.stderr, "", words)
            self.assertIsNone(self.STEERS.search(result.stderr), (words, result.stderr))
            if words[0] != "import":  # which can have several warnings
                self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        # A byte that is no text.
        result = subprocess.run([OPTIONS.rfinject, "report", b"a\x9b31m"], cwd=self.folder, env=self.environment,
                                capture_output=True, timeout=60)
        self.assertNotIn(b"\x9b", result.stderr)

    def test_no_output_steers_the_terminal(self):
        path = self.trace("hostile")
        for form in ("table", "csv", "json"):
            # In a pipe, which no sequence can steer, names stay exact.
            result = self.run_cli("report", path, "--by", "kernel", "--format", form)
            if form == "csv":
                self.assertIn("\033[2Jcleared", result.stdout)
            else:
                self.assertIsNone(self.STEERS.search(result.stdout))
            output = self.on_a_terminal(["report", str(path), "--by", "kernel", "--format", form])
            clean = re.sub("\033\\[[0-9;]*m", "", output.replace("\r\n", "\n"))
            self.assertIsNone(self.STEERS.search(clean), form)
        self.assertIn("\033[1m", self.on_a_terminal(["report", str(path)]))  # colours are ours

    def on_a_terminal(self, words):
        """What the command writes to a terminal."""
        return pseudo_terminal.run([OPTIONS.rfinject, *words], "stdout", 60, cwd=self.folder, stderr=subprocess.DEVNULL,
                                   env={**self.environment, "TERM": "xterm"}).stdout.decode()

    def test_every_write_to_standard_output_is_checked(self):
        path = self.trace("a100")
        for words in (["--help"], ["--version"], ["report", "-h"], ["report", path], ["report", path, "--format", "json"],
                      ["report", path, "--by", "stack"], ["report", path, "--by", "run"], ["diff", path, path], ["dump", path],
                      ["gpus"], ["gpus", "--format", "csv"], ["env"], ["env", "--json"], ["doctor", "--python", "none"]):
            words = list(map(str, words))
            with open("/dev/full", "w") as full:
                result = subprocess.run([OPTIONS.rfinject, *words], cwd=self.folder, env=self.environment, stdout=full,
                                        stderr=subprocess.PIPE, text=True, timeout=60)
            self.assertEqual(result.returncode, 1, words)
            self.assertEqual(result.stderr, "rfinject: standard output: No space left on device\n", words)
            closed = subprocess.run(["sh", "-c", 'exec "$0" "$@" >&-', OPTIONS.rfinject, *words], cwd=self.folder,
                                    env=self.environment, stderr=subprocess.PIPE, text=True, timeout=60)
            self.assertEqual(closed.returncode, 1, words)
            self.assertIn("standard output: Bad file descriptor", closed.stderr, words)


class DiffTest(CliTest):
    def test_conditions(self):
        path = self.trace("measured")
        diff = ["diff", "--baseline", path, path]
        # A script whose variable is not set gates nothing.
        self.assert_complains(self.run_cli(*diff, "--fail-if", ""), 2, "--fail-if is empty")
        self.assert_complains(self.run_cli(*diff, "--fail-if", "speed>+5%"), 2, "step_time, step_flop, step_bytes and oi")
        passed = self.run_cli(*diff, "--fail-if", "step_flop>+5%")
        self.assertEqual(passed.returncode, 0)
        self.assertIn("step_flop>+5%: passes, the change is", passed.stdout)

    def test_two_gpus(self):
        result = self.run_cli("diff", self.trace("v100"), self.trace("a100"))
        self.assertIn("two GPUs are compared: V100-SXM2-16GB against", result.stdout)


class MergeTest(CliTest):
    def test_any_order_and_grouping_gives_the_same_bytes(self):
        names = [str(self.trace(f"random:{i}")) for i in range(1, 7)]
        self.assertEqual(self.run_cli("merge", *names, "-o", "all.rfx").returncode, 0)
        self.assertEqual(self.run_cli("merge", *reversed(names), "-o", "reversed.rfx").returncode, 0)
        self.run_cli("merge", *names[:2], "-o", "x.rfx")
        self.run_cli("merge", names[5], *names[2:5], "-o", "y.rfx")
        self.run_cli("merge", "y.rfx", "x.rfx", "-o", "tree.rfx")
        expected = (self.folder / "all.rfx").read_bytes()
        self.assertEqual((self.folder / "reversed.rfx").read_bytes(), expected)
        self.assertEqual((self.folder / "tree.rfx").read_bytes(), expected)
        self.assertEqual(stat.S_IMODE((self.folder / "all.rfx").stat().st_mode), 0o600)

    def test_as_many_processors_as_there_are_give_the_same_bytes_and_messages(self):
        # There are ranks, a copy, a merged trace beside its parts, a trace that was cut, a file that is no trace, and
        # a trace in other units.
        for i in range(1, 41):
            self.trace(f"process:{i}", f"in/{i:02}.rfx")
        shutil.copy(self.folder / "in/07.rfx", self.folder / "in/again-07.rfx")
        whole = (self.folder / "in/12.rfx").read_bytes()
        (self.folder / "in/12.rfx").write_bytes(whole[:-9])
        self.trace("garbage", "in/30-garbage.rfx")
        for i in range(1, 6):
            self.trace(f"random:{i}", f"in/random-{i}.rfx")
        merged = self.folder / "in/13-14.rfx"
        self.assertEqual(self.run_cli("merge", "in/13.rfx", "in/14.rfx", "-o", merged).returncode, 0)
        processors = os.sched_getaffinity(0)
        seen = set()
        for count in sorted({1, 2, len(processors)}):
            few = set(sorted(processors)[:count])
            for again in range(5 if count > 1 else 1):
                result = self.run_cli("merge", "in", "-o", "out.rfx", "--force",
                                      preexec_fn=lambda: os.sched_setaffinity(0, few))
                self.assertEqual(result.returncode, 1)
                seen.add((result.stderr, (self.folder / "out.rfx").read_bytes()))
        self.assertEqual(len(seen), 1, [stderr for stderr, _ in seen])
        self.assertIn("not counted again", next(iter(seen))[0])

    def test_neither_order_nor_grouping_matters(self):
        for i in range(1, 8):
            self.trace(f"process:{i}", f"{i}.rfx")
        names = [f"{i}.rfx" for i in range(1, 8)]
        self.run_cli("merge", "6.rfx", "2.rfx", "-o", "some.rfx")
        self.run_cli("merge", "some.rfx", "7.rfx", "-o", "more.rfx")
        merged = set()
        for words in (names, names[::-1], ["1.rfx", "more.rfx", "3.rfx", "5.rfx", "4.rfx"], [*names, "some.rfx"]):
            result = self.run_cli("merge", *words, "-o", "out.rfx", "--force")
            self.assertEqual(result.returncode, 0, result.stderr)
            merged.add((self.folder / "out.rfx").read_bytes())
        self.assertEqual(len(merged), 1)

    def test_a_merged_trace_reports_as_its_parts(self):
        a, b = self.trace("process:1", "a.rfx"), self.trace("process:2", "b.rfx")
        self.run_cli("merge", a, b, "-o", "ab.rfx")
        one, both = (json.loads(self.run_cli("report", trace, "--format", "json").stdout) for trace in (a, "ab.rfx"))
        self.assertEqual(both["process_count"], 2 * one["process_count"])
        self.assertEqual(both["steps"], 2 * one["steps"])
        for before, after in zip(one["rows"], both["rows"]):
            self.assertEqual((2 * before["launches"], 2 * before["time_ns"]), (after["launches"], after["time_ns"]))
        self.assertEqual(one["summary"]["flop"] * 2, both["summary"]["flop"])
        measured = self.trace("measured")
        self.assertEqual(self.run_cli("merge", measured, self.trace("a100"), "-o", "two.rfx").stderr, "")
        result = self.run_cli("merge", measured, self.trace("hostile"), self.trace("a100"), "-o", "x.rfx")
        self.assertRegex(result.stderr, "did not run the operators of .*, to which it is added: ")

    def test_needs_an_output(self):
        self.assert_complains(self.run_cli("merge", "a.rfx"), 2, "-o FILE is missing")


    def processes(self, path):
        result = self.run_cli("report", path, "--format", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)["processes"]

    def test_nothing_is_counted_twice(self):
        a, b = self.trace("process:1", "in/a.rfx"), self.trace("process:2", "in/b.rfx")
        merged = self.folder / "in" / "all.rfx"
        for _ in range(3):  # from the second time on the folder holds what was merged
            result = self.run_cli("merge", "in", "-o", merged)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(len(self.processes(merged)), 2)
        self.assertRegex(result.stderr, r"in/a\.rfx: not counted again: what is in it is in in/all\.rfx")
        # A file that is named twice, a copy, a link, a folder and a file of it.
        shutil.copy(a, self.folder / "copy.rfx")
        for words in (["in/a.rfx", "in/a.rfx"], ["in/a.rfx", "copy.rfx"]):
            result = self.run_cli("report", *words, "--format", "json")
            self.assertEqual(result.returncode, 0)
            self.assertIn("not counted again", result.stderr)
            self.assertEqual(len(json.loads(result.stdout)["processes"]), 1)
        self.assertIn("not counted again", self.run_cli("merge", "in", "in/a.rfx", "-o", "twice.rfx").stderr)
        self.assertEqual(len(self.processes("twice.rfx")), 2)
        # Another trace of the same program is another trace.
        self.assertEqual(self.run_cli("merge", a, b, "-o", "ab.rfx").stderr, "")
        # Parts that overlap cannot be told apart.
        self.trace("process:3", "c.rfx")
        self.assertEqual(self.run_cli("merge", b, "c.rfx", "-o", "bc.rfx").returncode, 0)
        result = self.run_cli("merge", "ab.rfx", "bc.rfx", "-o", "abc.rfx")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, "not added: 1 of its 2 traces are in ")
        # When the missing part is given beside it, everything is there.
        self.assertEqual(self.run_cli("merge", "c.rfx", "in", "-o", "abc.rfx").returncode, 0)
        self.assertEqual(len(self.processes("abc.rfx")), 3)

    def test_of_a_copy_taken_on_the_way_and_the_whole_the_whole_counts(self):
        whole = self.trace("process:1", "whole.rfx")
        data = whole.read_bytes()
        second = data.index(b"RFXC", data.index(b"RFXC") + 4)
        (self.folder / "earlier.rfx").write_bytes(data[:second])
        outputs = set()
        for words in (["whole.rfx", "earlier.rfx"], ["earlier.rfx", "whole.rfx"]):
            result = self.run_cli("report", *words, "--format", "json")
            self.assertRegex(result.stderr, "earlier.rfx: not counted again")
            outputs.add(result.stdout)
        self.assertEqual(outputs, {self.run_cli("report", "whole.rfx", "--format", "json").stdout})

    def test_traces_without_an_id_count_once_too(self):
        self.trace("v100", "x.rfx")
        shutil.copy(self.folder / "x.rfx", self.folder / "y.rfx")
        result = self.run_cli("merge", "x.rfx", "y.rfx", "-o", "z.rfx")
        self.assertIn("y.rfx: not counted again", result.stderr)
        result = self.run_cli("merge", "x.rfx", "z.rfx", "-o", "zz.rfx")
        self.assertIn("not counted again", result.stderr)
        self.assertEqual((self.folder / "z.rfx").read_bytes(), (self.folder / "zz.rfx").read_bytes())


class CopiesTest(CliTest):
    def test_many_copies_are_one_line(self):
        first = self.trace("process:1", "in/a.rfx")
        for number in range(40):
            shutil.copy(first, self.folder / f"in/copy{number:02}.rfx")
        for words in (["runs", "in"], ["merge", "in", "-o", "all.rfx"]):
            result = self.run_cli(*words)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(result.stderr, "rfinject: 40 files are not counted again, because what is in them is in others: "
                             "in/copy00.rfx is the first, and what is in it is in in/a.rfx\n")


class OverwritingTest(CliTest):
    FORMATS = ("table", "json", "csv", "html", "svg")

    def refused(self, *words, path, why):
        before = pathlib.Path(path).read_bytes()
        self.assert_complains(self.run_cli(*words), 1, why)
        self.assertEqual(pathlib.Path(path).read_bytes(), before)

    def test_an_input_is_never_replaced(self):
        path = self.trace("process:1", "in/a.rfx")
        os.link(path, self.folder / "link.rfx")
        for words in (["report", path, "-o", path], ["report", "in", "-o", path], ["report", path, "-o", path, "--force"],
                      ["report", path, "-o", "in/../in/a.rfx"], ["report", path, "-o", "link.rfx", "--force"],
                      ["diff", path, path, "-o", path, "--force"], ["merge", path, "-o", path, "--force"],
                      ["merge", "in", "-o", path], ["report", path, "--theory", "link.rfx", "-o", "link.rfx", "--force"]):
            self.refused(*words, path=path, why="is one of the inputs, which are never replaced")
        csv_file = self.folder / "kernels.csv"
        csv_file.write_text("x")
        self.refused("import", "ncu", csv_file, "-o", csv_file, "--force", path=csv_file, why="is one of the inputs")

    def test_a_merged_trace_is_replaced_by_what_holds_it(self):
        self.trace("process:1", "in/a.rfx")
        self.assertEqual(self.run_cli("merge", "in", "-o", "in/all.rfx").returncode, 0)
        (self.folder / "in/a.rfx").unlink()
        self.trace("process:2", "in/b.rfx")
        self.assertEqual(self.run_cli("merge", "in", "-o", "in/all.rfx").returncode, 0)
        self.assertEqual(len(json.loads(self.run_cli("report", "in/all.rfx", "--format", "json").stdout)["processes"]), 2)
        # It is not replaced when a part of it could not be read.
        data = bytearray((self.folder / "in/all.rfx").read_bytes())
        data[-20] ^= 1
        (self.folder / "in/all.rfx").write_bytes(data)
        result = self.run_cli("merge", "in", "-o", "in/all.rfx")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, "not replaced|never replaced")
        self.assertEqual((self.folder / "in/all.rfx").read_bytes(), data)

    def test_somebodys_work_is_replaced_only_if_asked(self):
        path = self.trace("a100")
        process = self.trace("process:1", "process.rfx")
        for text in (b"notes\n", b"{}", b"a,b\n1,2\n", b"<!DOCTYPE html>\n<title>mine</title>", b"\0" * 10000, b"On Monday\n",
                     b"A  plan\n", process.read_bytes()):
            for words in (["report", path], ["diff", path, path], ["merge", path]):
                out = self.folder / "out"
                out.write_bytes(text)
                self.refused(*words, "-o", out, path=out, why="--force replaces it")
                self.assertEqual(self.run_cli(*words, "-o", out, "--force").returncode, 0)
                self.assertNotEqual(out.read_bytes(), text)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["a100.rfx", "out", "process.rfx"])

    def test_outputs_of_ours_are_replaced_without_a_question(self):
        a, b, hostile = self.trace("a100"), self.trace("measured"), self.trace("hostile")
        self.assertEqual(self.run_cli("merge", a, "-o", "out").returncode, 0)
        for form in self.FORMATS:
            for words in (["report", a], ["report", b, "--by", "model"], ["report", a, "--by", "run"], ["diff", a, b],
                          ["diff", b, a, "--by", "op"], ["report", hostile, "--by", "kernel"]):
                result = self.run_cli(*words, "--format", form, "-o", "out")
                self.assertEqual((result.returncode, result.stderr), (0, ""), (words, form))
        self.assertEqual(self.run_cli("report", a, "--by", "stack", "-o", "out").returncode, 0)
        self.assertEqual(self.run_cli("merge", a, "-o", "out").returncode, 0)
        self.assertEqual(self.run_cli("report", a, "-o", "out").returncode, 0)
        (self.folder / "empty").touch()
        self.assertEqual(self.run_cli("report", a, "-o", "empty").returncode, 0)
        self.assertEqual(stat.S_IMODE((self.folder / "empty").stat().st_mode), 0o600)

    def test_a_closed_stream_is_not_the_output_file(self):
        cut = self.folder / "cut.rfx"  # so that there is something to say on standard error
        cut.write_bytes(self.trace("process:1", "whole").read_bytes()[:-3])
        for closed in ("0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"):
            subprocess.run(["sh", "-c", f'exec "$0" "$@" {closed}', OPTIONS.rfinject, "report", cut, "-o", "out.json"],
                           cwd=self.folder, env=self.environment, stderr=subprocess.DEVNULL, timeout=60)
            json.loads((self.folder / "out.json").read_text())


class LimitTest(CliTest):
    """What a small file can name does not make a large output, and the output says what it left out."""

    def output(self, *words):
        result = self.run_cli(*words)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def test_runs(self):
        path = self.trace("runs:40")
        said = "only the 3 of 40 runs with the most launches are shown"
        for form in ("table", "json", "html", "svg"):
            all_of_them = self.output("report", path, "--format", form)
            self.assertEqual(all_of_them.stderr, "")
            some = self.output("report", path, "--format", form, "--limit", "runs=3")
            self.assertIn(said, some.stderr)
            self.assertIn(said, some.stdout.replace("\n  ", " "), form)
            self.assertLess(len(some.stdout), len(all_of_them.stdout) / 3, form)
        self.assertIn(said, self.output("report", path, "--format", "csv", "--limit=runs=3").stderr)
        self.assertIn(said, self.output("diff", path, path, "--limit=runs=3").stderr)
        self.assertEqual(self.output("report", path, "--by", "run", "--limit", "runs=0").stderr, "")

    def test_runs_by_default(self):
        path = self.trace("runs:1500")
        result = self.output("report", path, "--by", "run", "--format", "csv")
        self.assertIn("only the 1000 of 1500 runs", result.stderr)

    def test_rows(self):
        path = self.trace("measured")
        result = self.output("report", path, "--by", "kernel", "--format", "json", "--limit", "rows=5")
        self.assertIn("(beyond the limit)", result.stdout)
        self.assertIn("launch keys with the least time are added up", result.stderr)
        whole = json.loads(self.output("report", path, "--by", "kernel", "--format", "json").stdout)
        some = json.loads(result.stdout)
        self.assertLess(len(some["rows"]), len(whole["rows"]))
        self.assertAlmostEqual(some["summary"]["time_ns"], whole["summary"]["time_ns"], delta=whole["summary"]["time_ns"] * 1e-5)

    def test_names(self):
        path = self.trace("name:1500000")
        for form in ("table", "json", "csv", "html", "svg"):
            result = self.output("report", path, "--by", "kernel", "--format", form)
            self.assertIn("texts of more than 16384 bytes are cut", result.stderr)
            self.assertLess(len(result.stdout), 2000000, form)
        exact = self.output("report", path, "--by", "kernel", "--format", "json", "--limit", "name=0")
        self.assertIn("x" * 1500000, exact.stdout)

    def test_mistakes(self):
        path = self.trace("a100")
        for text in ("runs", "runs=", "runs=x", "lines=3", "runs=1,,"):
            self.assert_complains(self.run_cli("report", path, "--limit", text), 2, "--limit wants")


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
        self.assertEqual(re.findall(r"(?m)^(R\d+)  ", self.run_cli("explain").stdout),
                         [f"R{i:03}" for i in range(1, 13)])
        self.assert_complains(self.run_cli("explain", "R013"), 2, "'R013' is neither an alarm")
        self.assertRegex(self.run_cli("explain", "Bound").stdout, r"\Abound: What most of the time ")
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
    parser = argparse.ArgumentParser()
    parser.add_argument("--rfinject", required=True, type=os.path.abspath)
    parser.add_argument("--make-trace", required=True, type=os.path.abspath)
    parser.add_argument("--library", required=True, type=os.path.realpath)
    parser.add_argument("--asan-program", required=True, type=os.path.abspath)
    parser.add_argument("--sanitized", action="store_true", help="the command is slow")
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
