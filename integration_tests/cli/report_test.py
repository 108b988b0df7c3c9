"""`rfinject report` and `diff` as a user meets them."""
import csv
import io
import json
import os
import pathlib
import re
import stat
import subprocess
import sys

from command import CliTest, OPTIONS, main

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import pseudo_terminal  # noqa: E402


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
        self.assert_complains(self.run_cli("runs", "--format", "xml"), 2, "there are csv, html, json, junit, markdown and table")

    def test_bad_input(self):
        (self.folder / "empty-folder").mkdir()
        (self.folder / "empty.rfx").write_bytes(b"")
        self.trace("newer")
        self.trace("garbage")
        for name, *patterns in [
            ("nowhere.rfx", "nowhere.rfx: no such file or folder$"),
            ("empty-folder", r"empty-folder: there are no traces \(\*\.rfx\) in this folder; 'rfinject PROGRAM' writes them, where it calls a model with parameters or steps an optimizer$"),
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
            ([path, "--by", "color"], "--by color: there are run, model, phase, layer, class, op, kernel, precision, source, stack, memory, timeline, wait and rank"),
            ([path, "--format", "pdf"], "--format pdf: there are csv, html, json, junit, markdown, svg and table"),
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
        result = self.run_cli("import", "ncu", path, *(["--gpu", gpu] if gpu else []), "--model", "Net", "-o", trace, "--force")
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
        all_ids = re.findall(r"(?m)^(R\d{3})  ", self.run_cli("explain").stdout)
        for ids in ("R000", "R001,x", "R1"):
            self.assert_complains(self.run_cli("report", above, f"--strict={ids}"), 2,
                                  f"--strict={ids}: there are {all_ids[0]} to {all_ids[-1]}")

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


if __name__ == "__main__":
    main()
