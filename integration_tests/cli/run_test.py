"""The command as it starts a program: exit codes, environments, what it says of mistakes."""
import json
import os
import re
import signal
import stat
import subprocess

from command import CliTest, OPTIONS, main


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
            (["--estimate-on", "gpu", "true"], "--estimate-on wants auto, cpu or virtual-gpu, not 'gpu'"),
            (["--values", "large", "true"], "--values wants small, all or none, not 'large'"),
            (["--virtual-gpus", "2", "true"], "--virtual-gpus goes with --estimate GPU"),
            (["-o"], "-o wants a value: PATH"),
            (["-z", "true"], "no option -z"),
            (["run"], "no program is named"),
            (["try", "tf32", "--estimate", "T4", "true"], "--estimate: options stand before the changes"),
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

    def test_report_of_a_program_that_was_killed(self):
        killed = self.run_cli("--report", "sh", "-c", "kill -9 $$")
        self.assertEqual(killed.returncode, -signal.SIGKILL)
        self.assertIn("rfinject: the program was killed; where the kernel did it for lack of memory, dmesg says", killed.stderr)
        self.assertNotIn("killed", self.run_cli("--report", "true").stderr)

    def test_report_forwards_signals(self):
        script = "trap 'echo got; exit 5' USR1; echo ready; while :; do sleep 0.05; done"
        process = subprocess.Popen([OPTIONS.rfinject, "--report", "-q", "sh", "-c", script], cwd=self.folder,
                                   env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.send_signal(signal.SIGUSR1)
        output, _ = process.communicate(timeout=60)
        self.assertEqual((output, process.returncode), ("got\n", 5))


if __name__ == "__main__":
    main()
