#!/usr/bin/env python3
"""Every command takes a recording of torch.profiler as it is, and says of a real GPU what the file holds.

    recordings_test.py --rfinject BIN [unittest arguments]
"""
import gzip
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import zipfile

import pftrace
from command_case import OPTIONS, CommandCase, main

DATA = pathlib.Path(__file__).resolve().parents[2] / "cli" / "import" / "testdata"
RESNET = DATA / "h100_resnet18_step.json.gz"  # one step of our own, of a real H100; the others are made by hand
GPU = ("Kernel", "Memcpy", "Memset", "kernel", "gpu_memcpy", "gpu_memset")


def recording_of(path):
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def events_of(path):
    return recording_of(path)["traceEvents"]


def made(steps, name="ProfilerStep#%d"):
    """A recording of steps of one kernel each, which takes STEPS[i] us."""
    events, at = [], 1000
    for number, us in enumerate(steps, 1):
        events += [{"ph": "X", "cat": "user_annotation", "name": name % number, "pid": 1, "tid": 1, "ts": at, "dur": 900},
                   {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": at + 10, "dur": 5,
                    "args": {"correlation": number}},
                   {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": at + 20, "dur": us,
                    "args": {"device": 0, "stream": 7, "correlation": number}}]
        at += 1000
    return {"schemaVersion": 1, "traceEvents": events}


class Recordings(CommandCase):
    def rows(self, *arguments):
        return self.report(*arguments)["rows"]

    def test_a_recording_is_reported_as_it_is(self):
        result = self.cli("report", RESNET)
        self.assertIn("Imported from torch.profiler, measured on NVIDIA H100 80GB HBM3: a step takes\n  94.3 ms of GPU time", result.stdout)
        self.assertIn("By layer", result.stdout)
        self.assertIn("By operator", self.cli("report", DATA / "dialect_2021.json").stdout)

    def test_all_time_of_the_file_is_in_every_view(self):
        for path in sorted(DATA.glob("*.json*")):
            ns = sum(round(event["dur"] * 1000) for event in events_of(path) if event.get("cat") in GPU)
            for by in ("phase", "layer", "op", "kernel"):
                self.assertEqual(round(sum(row["time_ns"] or 0 for row in self.rows(path, "--by", by))), ns, (path.name, by))

    def test_a_trace_of_perfetto_says_what_the_json_says(self):
        for name in ("h100_resnet18_step.json.gz", "perceptron.json", "job_rank0.json"):
            recording = recording_of(DATA / name)
            (self.folder / "recording.json").write_text(json.dumps(recording))
            for file, packed, categories in (("plain.pftrace", False, True), ("packed.pftrace.gz", True, True),
                                             ("earlier.pftrace", True, False)):
                trace = pftrace.encode(recording["traceEvents"], recording.get("baseTimeNanoseconds", 0), categories)
                (self.folder / file).write_bytes(gzip.compress(trace) if packed else trace)
                for by in ("phase", "op", "kernel", "layer"):
                    same = ("phase", "op", "kernel", "layer", "launches", "time_ns", "model_flop", "compulsory_bytes", "grid")
                    rows = lambda path: [{key: row.get(key) for key in same if not (key == "layer" and name == "job_rank0.json")}
                                         for row in self.rows(path, "--by", by)]
                    self.assertEqual(rows(file), rows("recording.json"), (name, file, by))
        self.cli("import", "torch", "packed.pftrace.gz", "-o", "packed.rfx")
        self.assertIn("GH100", self.cli("dump", "packed.rfx").stdout)  # "sm_90" is all that such a file says of the GPU
        whole = (self.folder / "plain.pftrace").read_bytes()
        (self.folder / "cut.pftrace").write_bytes(whole[:-30])
        self.assertIn("no packet of a trace follows; what came before is here", self.cli("report", "cut.pftrace").stderr)
        (self.folder / "system.pftrace").write_bytes(pftrace.encode([]))
        self.assertIn("the recording has no kernels", self.cli("report", "system.pftrace", expect=1).stderr)

    def test_an_imported_trace_says_the_same_as_the_file(self):
        self.cli("import", "torch", RESNET, "-o", "trace.rfx")
        for by in ("phase", "kernel"):
            self.assertEqual(self.rows("trace.rfx", "--by", by), self.rows(RESNET, "--by", by))
        self.cli("merge", RESNET, "-o", "merged.rfx")
        self.assertEqual(self.rows("merged.rfx", "--by", "op"), self.rows(RESNET, "--by", "op"))

    def test_measured_stands_beside_expected(self):
        rows = self.rows(RESNET, "--by", "op")
        expected = [row for row in rows if row["usual_time_ns"] is not None]
        self.assertGreater(len(expected), 8)
        for row in expected:
            self.assertLess(row["usual_time_low_ns"], row["usual_time_ns"], row["op"])
            self.assertGreater(row["usual_time_high_ns"], row["usual_time_ns"], row["op"])
        self.assertIsNone(next(row for row in self.rows(DATA / "dialect_2021.json", "--by", "op") if row["phase"] == "data")
                          ["usual_time_ns"])
        # What an estimate may be off by is named, too, and said to be that.
        said = self.cli("report", RESNET, "--by", "op").stdout.replace("\n  ", " ")
        self.assertRegex(said, r"Slower than such work usually is on H100-SXM5-80GB: backward aten::convolution_backward [\d.]+ ms "
                               r"\(x[\d.]+, which the estimate may be off by\)")
        self.assertRegex(said, r"forward aten::convolution [\d.]+ ms \(x[\d.]+, which the estimate may be off by\)")

    def test_what_has_no_layers_and_no_times_is_not_said_to_have(self):
        self.assertIn("No launch has a layer; ", self.cli("report", DATA / "dialect_2021.json").stdout)
        counters = DATA / "counters.json"
        report = self.cli("report", counters).stdout
        self.assertNotIn("0 ns", report)
        self.assertNotIn("of GPU time has", report)
        self.assertTrue(all(row["time_ns"] is None and row["time_share"] is None for row in self.rows(counters)))

    def test_all_steps_count_and_odd_ones_are_named(self):
        for steps in ([100] * 5 + [300], [100 + step * 8 for step in range(40)], [50, 60] * 20, [100] * 1500 + [900]):
            (self.folder / "steps.json").write_text(json.dumps(made(steps)))
            report = json.loads(self.cli("report", "steps.json", "--format", "json").stdout)
            self.assertEqual(round(report["rows"][0]["time_ns"]), 1000 * sum(steps))
            text = self.cli("report", "steps.json").stdout.replace("\n      ", " ")
            self.assertNotIn("left out", text)
            self.assertNotIn("Drifting", text)
            self.assertEqual("ProfilerStep#6 300 us" in text, len(steps) == 6, text)
        self.assertIn("ProfilerStep#1501 900 us", text)

    def test_what_the_step_waits_for(self):
        recording = DATA / "dialect_2021.json"
        self.assertIn("host waits for data", self.cli("report", recording, "--by", "wait").stdout)
        self.assertIn("waits for its data loader", self.cli("advise", recording).stdout)

    def test_ranks_of_a_folder_add_up(self):
        rank = DATA / "job_rank0.json"
        (self.folder / "job").mkdir()
        shutil.copy(rank, self.folder / "job")
        other = recording_of(rank)
        other["distributedInfo"]["rank"] = 1
        (self.folder / "job" / "job_rank1.json").write_text(json.dumps(other))
        self.cli("import", "torch", "job", "-o", "job.rfx")
        report = json.loads(self.cli("report", "job.rfx", "--format", "json").stdout)
        self.assertEqual((report["process_count"], report["steps"]), (2, 2))
        self.assertEqual([row["rank"] for row in self.rank_rows("job.rfx")], ["0", "1"])
        for command in (("report", "job", "--by", "rank"), ("report", "job.rfx", "--by", "rank")):
            self.assertEqual(self.cli(*command).stdout, self.cli("report", "job.rfx", "--by", "rank").stdout)
        merged = self.cli("merge", "job", "-o", "merged.rfx")
        self.assertEqual(merged.stderr, "")
        self.assertEqual(self.rank_rows("merged.rfx"), self.rank_rows("job"))

    def test_the_rank_that_comes_last_to_collectives_is_late(self):
        job = self.folder / "job"
        job.mkdir()
        for rank, (forward, nccl, ahead) in enumerate(((50_000, 60_000, 0), (100_000, 10_000, 7_000_000))):
            recording = recording_of(DATA / "job_rank0.json")
            recording["distributedInfo"]["rank"] = rank
            events = []
            for step in range(3):
                begin = ahead + 1000 + 120_000 * step
                events += [{"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1, "ts": begin,
                            "dur": 120_000},
                           {"ph": "X", "cat": "kernel", "name": "sgemm", "pid": 0, "tid": 7, "ts": begin + 50, "dur": forward,
                            "args": {"device": 0, "stream": 7}},
                           {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                            "pid": 0, "tid": 20, "ts": begin + 60 + forward, "dur": nccl, "args": {"device": 0, "stream": 20}}]
            recording["traceEvents"] = events
            (job / f"rank{rank}.json").write_text(json.dumps(recording))
        said = self.cli("report", "job", "--by", "rank").stdout.replace("\n  ", " ")
        self.assertIn("rank 1 is late by 50.0 ms, the transfer takes 10.0 ms, and rank 0 waits 50.0 ms", said)
        self.assertIn("clocks are up to 7.00 s apart", said)
        rows = self.rank_rows("job")
        self.assertEqual([(row["late_at_collective_ns"], row["waits_at_collective_ns"]) for row in rows],
                         [(0, 50_000_000), (50_000_000, 0)])
        self.cli("import", "torch", "job", "-o", "job.rfx")
        self.assertEqual(self.rank_rows("job.rfx"), rows)

    def rank_rows(self, path):
        run = json.loads(self.cli("report", path, "--by", "rank", "--format", "json").stdout)["runs"][0]
        return [row for row in run["rows"] if row["rank"] is not None]

    def test_names_and_shapes_come_from_other_traces(self):
        trace = DATA / "execution_trace" / "perceptron.json"
        recording = DATA / "perceptron.json"
        self.cli("import", "torch", recording, "--shapes", trace, "-o", "shapes.rfx")
        hidden, output = 2 * 32 * 64 * 128, 2 * 32 * 128 * 16
        flop = {(row["phase"], row["op"]): row["model_flop"] for row in self.rows("shapes.rfx", "--by", "op")}
        self.assertEqual((flop["forward", "aten::addmm"], flop["backward", "aten::mm"]), (2 * (hidden + output), 2 * (hidden + 2 * output)))
        self.assertEqual(sum(row["model_flop"] or 0 for row in self.rows(recording, "--by", "op")), 0)
        self.cli("import", "et", trace, "--estimate", "H100", "-o", "estimate.rfx")
        report = self.cli("report", "estimate.rfx").stdout
        self.assertIn("ESTIMATED on H100-SXM5-80GB", report)
        self.assertIn("By operator", report)
        self.assertIn("rfinject import et FILE --estimate GPU", self.cli("report", trace, expect=1).stderr)
        for words, why in ((("et", trace), "et wants --estimate GPU"), (("torch", recording, "--estimate", "T4"), "--estimate goes with et"),
                           (("ncu", "x", "--names", "y"), "--names goes with torch"),
                           (("nsys", "x", "--shapes", "y"), "--shapes goes with torch")):
            self.assertIn(why, self.cli("import", *words, "-o", "x.rfx", expect=2).stderr)
        self.cli("import", "torch", recording, "--names", "shapes.rfx", "-o", "x.rfx", expect=1)

    def test_amd_has_roofs_and_no_estimates(self):
        self.assertIn("MI300X-OAM-192GB", self.cli("gpus", "MI300X").stdout)
        report = self.cli("report", DATA / "rocm.json", "--format", "json").stdout
        self.assertIsNone(json.loads(report)["device"]["roofs_of"])  # "AMD Radeon Graphics" says nothing
        self.cli("import", "torch", DATA / "rocm.json", "--gpu", "MI250", "-o", "mi250.rfx")
        report = json.loads(self.cli("report", "mi250.rfx", "--format", "json").stdout)
        self.assertEqual(report["device"]["roofs_of"], "MI250-OAM-64GB")
        self.assertTrue(all(row["usual_time_ns"] is None for row in report["rows"]))
        self.assertIn("nothing is estimated for AMD's GPUs", self.cli("--estimate", "MI300X", "true", expect=2).stderr)

    def test_every_format_is_read_packed(self):
        lines = ['"ID","Kernel Name","CC","gpu__time_duration.sum"', '"","","","ns"', '"0","k","8.0","1500"']
        (self.folder / "page_v100.csv").write_text("\n".join(lines) + "\n")
        with sqlite3.connect(self.folder / "export.sqlite") as database:
            database.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
            database.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, gridX, gridY, gridZ, blockX, blockY, blockZ, "
                             "demangledName)")
            database.execute("INSERT INTO StringIds VALUES (1, 'k')")
            database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (0, 1500, 1, 1, 1, 1, 1, 1, 1)")
        (self.folder / "steps.json").write_text(json.dumps(made([1.5])))
        for name in ("page_v100.csv", "export.sqlite", "steps.json"):
            plain = self.rows(name)
            self.assertEqual([round(row["time_ns"]) for row in plain], [1500], name)
            packed = self.folder / "packed" / f"{name}.gz"
            packed.parent.mkdir(exist_ok=True)
            packed.write_bytes(gzip.compress((self.folder / name).read_bytes()))
            self.assertEqual(self.rows(packed), plain, name)
            (self.folder / f"cut_{name}.gz").write_bytes(packed.read_bytes()[:-9])
        self.assertIn("ends too early", self.cli("report", "cut_export.sqlite.gz", expect=1).stderr)
        temporary = self.folder / "temporary"
        temporary.mkdir()
        subprocess.run([OPTIONS.rfinject, "report", "packed/export.sqlite.gz"], cwd=self.folder, check=True, capture_output=True,
                       env={**os.environ, "TMPDIR": str(temporary)})
        self.assertEqual(list(temporary.iterdir()), [])

    def test_what_is_packed_otherwise_is_told_what_unpacks_it(self):
        packings = {".zst": ("zstd -d", b"\x28\xb5\x2f\xfd"), ".xz": ("xz -dk", b"\xfd7zXZ\0"), ".bz2": ("bzip2 -dk", b"BZh91AY"),
                    ".lz4": ("lz4 -d", b"\x04\x22\x4d\x18")}
        (self.folder / "files").mkdir()
        for ending, (command, begins) in packings.items():
            for name in ("steps.json", "export.sqlite", "page.csv"):
                path = self.folder / (name + ending)
                path.write_bytes(begins + bytes(100))
                wanted = f"packed as {ending}, which is not read: unpack it ({command} '{name}{ending}')"
                self.assertIn(f"{path.name}: {wanted}", self.cli("report", path.name, expect=1).stderr)
                self.assertIn(wanted, " ".join(self.cli("doctor", path.name, expect=1).stdout.split()))
                format_name = {"steps.json": "torch", "export.sqlite": "nsys", "page.csv": "ncu"}[name]
                self.assertIn(wanted, self.cli("import", format_name, path.name, "-o", "x.rfx", expect=1).stderr)
            path.rename(self.folder / "files" / path.name)
            self.assertIn(f"({command} 'files/page.csv{ending}')", self.cli("report", "files", expect=1).stderr)
            (self.folder / "files" / path.name).unlink()

    def test_doctor_says_whether_sums_of_a_file_can_be_trusted(self):
        (self.folder / "good.json").write_text(json.dumps(made([100] * 3)))
        (self.folder / "bad.json").write_text(json.dumps(made([100] * 3)).replace('"ts": 2020', '"ts" 2020'))
        (self.folder / "none.json").write_text("[]")
        good = self.cli("doctor", "good.json")
        self.assertIn("3 kernels and copies, 300 us of GPU time", good.stdout)
        self.assertEqual(good.stderr, "")
        bad = self.cli("doctor", "good.json", "bad.json", expect=1)
        self.assertIn("1 event is no JSON", bad.stdout)
        self.assertEqual(bad.stdout.count("cannot be trusted"), 1)
        self.assertIn("error: ", self.cli("doctor", "none.json", expect=1).stdout)
        self.assertIn("error: ", self.cli("doctor", "nothing.json", expect=1).stdout)
        block = self.cli("report", "bad.json").stdout.split("About this recording\n")[1]
        self.assertIn("1 event is no JSON", block)
        self.assertNotIn("About this recording", self.cli("report", "good.json", "--by", "phase").stderr)

    def test_mistakes_have_a_line(self):
        (self.folder / "cut.json.gz").write_bytes(RESNET.read_bytes()[:-2000])
        self.assertIn("the file ends inside of the list of events", self.cli("report", "cut.json.gz").stderr)
        (self.folder / "odd.json").write_text('{"schemaVersion": 1, "traceEvents": [{"ph" "X"}]}')
        self.assertIn("odd.json: byte 43: this is not JSON", self.cli("report", "odd.json", expect=1).stderr)
        (self.folder / "cpu.json").write_text('{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "dur": 1}]}')
        self.assertIn("the recording has no kernels", self.cli("report", "cpu.json", expect=1).stderr)
        self.assertIn("say what to import: ncu, nsys, torch or et", self.cli("import", "vtune", "x", expect=2).stderr)
        with zipfile.ZipFile(self.folder / "notes.json.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("notes.txt", "no recording")
        self.assertIn("no recording of torch.profiler", self.cli("report", "notes.json.zip", expect=1).stderr)
        archive = bytearray((self.folder / "notes.json.zip").read_bytes())
        archive[6] |= 1
        (self.folder / "secret.json.zip").write_bytes(archive)
        self.assertIn("secret.json.zip: a ZIP archive whose first file is encrypted",
                      self.cli("report", "secret.json.zip", expect=1).stderr)
        (self.folder / "cut.json.zip").write_bytes(archive[:20])
        self.assertIn("ends in its first header", self.cli("report", "cut.json.zip", expect=1).stderr)
        os.mkfifo(self.folder / "pipe")
        self.assertIn("no regular file", self.cli("import", "torch", "pipe", "-o", "x.rfx", expect=1).stderr)


if __name__ == "__main__":
    main()
