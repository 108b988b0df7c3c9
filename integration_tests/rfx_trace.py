"""Reads rfinject traces (*.rfx) with the Python that protoc makes of proto/rfinject/v1/trace.proto.

A second reader of proto/FORMAT.md beside the command's: framing, checksums and adding up are this file's own, so the
tests of the injected library do not need the command. The build puts the schema's module and protobuf's runtime in
pure Python into BUILD/python, so that any Python can run this, with or without packages.

    trace = read_trace("run.rfx")        # one process
    for trace in read_traces("folder"):  # every *.rfx below
        trace.layers[3]["path"], trace.rows()

As a program: python3 rfx_trace.py PATH... prints what is in the files.
"""

import glob
import importlib.util
import json
import os
import struct
import sys


def _python_folder():
    """BUILD/python of the library under test, or of the newest build of this tree."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    builds = [os.path.dirname(os.path.dirname(os.environ.get("RFINJECT_LIBRARY", "")))]
    builds += sorted(glob.glob(os.path.join(root, "build", "*")), key=os.path.getmtime, reverse=True)
    for build in builds:
        folder = os.path.join(build, "python")
        if os.path.isfile(os.path.join(folder, "proto/rfinject/v1/trace_pb2.py")):
            return folder
    raise ImportError("there is no build with python/proto/rfinject/v1/trace_pb2.py: run scripts/build")


def _schema():
    """The module that protoc made. The path of the runtime is set for its import only, so that the tested code sees
    no other path."""
    folder = _python_folder()
    sys.path.insert(0, folder)
    try:
        spec = importlib.util.spec_from_file_location(
            "trace_pb2", os.path.join(folder, "proto/rfinject/v1/trace_pb2.py"))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        from google.protobuf.message import DecodeError as decode_error
    finally:
        sys.path.remove(folder)
    return module, decode_error


trace_pb2, DecodeError = _schema()

FILE_MAGIC = b"RFINJECT"
FRAME_MAGIC = 0x43584652
FORMAT_MAJOR = 3
PHASES = ["other", "forward", "backward", "optimizer", "data", "communication", "recompute", "eval"]
SOURCES = ["unspecified", "measured", "estimated", "imported", "none"]
TIERS = ["?", "A", "B", "C", "D", "E", "F"]
SEVERITIES = ["info", "warning", "error"]


class TraceError(Exception):
    """The file is not a whole trace; str() names file, offset and reason."""


def _crc32c_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_CRC_TABLE = _crc32c_table()


def crc32c(data, crc=0):
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def as_dict(message):
    """The fields of one message that are set, by name: texts as str, enumerators as numbers, messages as dicts."""
    out = {}
    for field, value in message.ListFields():
        if field.type == field.TYPE_BYTES:
            convert = _text
        elif field.type == field.TYPE_MESSAGE:
            convert = as_dict
        else:
            convert = _same
        # protobuf 7 has no label any more, and protobuf before 6.31 no is_repeated.
        repeated = field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED
        out[field.name] = [convert(one) for one in value] if repeated else convert(value)
    return out


def _text(value):
    return value.decode("utf-8")


def _same(value):
    return value


def read_chunks(path):
    """Every chunk of the file as a dict (as_dict), in order. Raises TraceError where something is damaged."""
    for message in read_messages(path):
        try:
            chunk = as_dict(message)
        except ValueError as error:
            raise TraceError("%s: %s" % (path, error)) from None
        yield chunk


def read_messages(path):
    """Every chunk of the file as protobuf's message, in order. Raises TraceError where something is damaged."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:8] != FILE_MAGIC:
        raise TraceError("%s: offset 0: not a trace" % path)
    if struct.unpack_from("<I", data, 12)[0] != crc32c(data[:12]):
        raise TraceError("%s: offset 0: damaged file header" % path)
    if struct.unpack_from("<H", data, 8)[0] > FORMAT_MAJOR:
        raise TraceError("%s: offset 8: newer format" % path)
    offset, sequence = 16, 0
    while offset < len(data):
        if offset + 16 > len(data):
            raise TraceError("%s: offset %d: cut inside a frame header" % (path, offset))
        magic, length, number, checksum = struct.unpack_from("<IIII", data, offset)
        if magic != FRAME_MAGIC:
            raise TraceError("%s: offset %d: no frame here" % (path, offset))
        if number != sequence:
            raise TraceError("%s: offset %d: frame %d, expected %d" % (path, offset, number, sequence))
        payload = data[offset + 16:offset + 16 + length]
        if len(payload) < length:
            raise TraceError("%s: offset %d: cut inside a frame" % (path, offset))
        if crc32c(payload, crc32c(data[offset + 4:offset + 12])) != checksum:
            raise TraceError("%s: offset %d: checksum" % (path, offset))
        try:
            chunk = trace_pb2.Chunk.FromString(payload)
        except (ValueError, DecodeError) as error:
            raise TraceError("%s: offset %d: %s" % (path, offset, error)) from None
        yield chunk
        offset += 16 + length
        sequence += 1


def _merge_facts(old, new):
    for key, value in new.items():
        if isinstance(value, dict):
            _merge_facts(old.setdefault(key, {}), value)
        else:
            old[key] = value


class Trace:
    """The content of the chunks of one file, added up."""

    def __init__(self, path):
        self.path = path
        self.run = {}          # facts of run 1, merged
        self.names = {}        # id: text
        self.models = {}       # id: dict
        self.layers = {}       # id: dict
        self.metrics = {}      # id: dict
        self.keys = {}         # id: dict
        self.modules = {}      # id: dict, of native stacks
        self.stacks = {}       # id: dict
        self.lines = {}        # id: dict, of the program's source
        self.launches = {}     # key id: launches
        self.sums = {}         # (key id, metric id): {"n", "sum", "min", "max"}
        self.ids = []
        self.steps = []
        self.eval_batches = 0  # that were validated
        self.diagnostics = []
        self.pm_windows = []
        self.sampled_windows = []
        self.drops = {}        # what: count
        self.end = None        # {"reason": …}, or None when the process was cut off
        self.damage = ""       # why reading stopped early, or ""

    def add(self, chunk):
        self.ids += chunk.get("trace_id", [])
        for run in chunk.get("run", []):
            _merge_facts(self.run, run)
        for name in chunk.get("name", []):
            self.names[name["id"]] = name.get("text", "")
        for kind, table in (("model", self.models), ("layer", self.layers), ("metric", self.metrics),
                            ("key", self.keys), ("native_module", self.modules),
                            ("native_stack", self.stacks), ("source_line", self.lines)):
            for message in chunk.get(kind, []):
                _merge_facts(table.setdefault(message["id"], {}), message)
        for stats in chunk.get("stats", []):
            key = stats["key"]
            self.launches[key] = self.launches.get(key, 0) + stats.get("launches", 0)
            for metric in stats.get("metric", []):
                total = self.sums.setdefault((key, metric["metric"]), {"n": 0, "sum": 0, "min": None, "max": 0})
                if metric.get("n", 0) == 0:
                    continue
                low, high = metric.get("min", 0), metric.get("max", 0)
                added = metric.get("sum", 0) + (metric.get("sum_high", 0) << 64)
                if added == 0 and high == 0:  # samples that are all the same
                    added, high = metric["n"] * low, low
                total["n"] += metric["n"]
                total["sum"] += added
                total["min"] = low if total["min"] is None else min(total["min"], low)
                total["max"] = max(total["max"], high)
        for repeated in chunk.get("repeated_launches", []):
            key = 1
            for gap, keys, launches in zip(repeated["gap"], repeated["keys"], repeated["launches"]):
                for key in range(key + gap, key + gap + keys):
                    self.repeat(key, launches)
                key += 1
        self.steps += chunk.get("step", [])
        self.eval_batches += sum(run.get("eval_batches", 0) for run in chunk.get("step_stats", {}).get("run", []))
        self.diagnostics += chunk.get("diagnostic", [])
        self.pm_windows += chunk.get("pm_window", [])
        self.sampled_windows += chunk.get("sampled_window", [])
        for drop in chunk.get("drop", []):
            self.drops[drop["what"]] = self.drops.get(drop["what"], 0) + drop.get("count", 0)
        if "end" in chunk:
            self.end = chunk["end"]

    def repeat(self, key, launches):
        """Adds launches whose samples are those before."""
        self.launches[key] += launches
        for metric in self.metrics:
            total = self.sums.get((key, metric))
            if total is not None:
                total["n"] += launches
                total["sum"] += launches * total["min"]

    @property
    def tier(self):
        return TIERS[self.run.get("tier", 0)]

    @property
    def source(self):
        return SOURCES[self.run.get("source", 0)]

    @property
    def process(self):
        return self.run.get("process", {})

    def model_name(self, layer):
        return self.models.get(layer.get("model", 0), {}).get("class_name", "")

    def paths(self, model=None):
        """The layers' paths as a list ("" is the root), of one model class or of all."""
        return [layer.get("path", "") for layer in self.layers.values()
                if model is None or self.model_name(layer) == model]

    def layer(self, path, model=None):
        """The one layer with this path; None when there is none, ValueError when there are several."""
        found = [layer for layer in self.layers.values() if layer.get("path", "") == path and
                 (model is None or self.model_name(layer) == model)]
        if len(found) > 1:
            raise ValueError("%d layers %r" % (len(found), path))
        return found[0] if found else None

    def functions(self, stack):
        """What the frames of a native stack are called, innermost first; "" where nobody knows."""
        stack = self.stacks.get(stack, {})
        names = stack.get("function", [0] * len(stack.get("module", [])))
        return [self.names.get(name, "") for name in names]

    def line(self, number):
        """"model.py:41 Block.forward", or "" where no line is known."""
        line = self.lines.get(number)
        if line is None:
            return ""
        name = self.names.get(line["file"], "")
        return "%s:%d %s" % (name, line["line"], self.names.get(line.get("function", 0), ""))

    def rows(self):
        """One dict per launch key: kernel, op, node, signature, layer (path, or None), model, phase, launches, line,
        stack (functions, innermost first) and every metric's sum under the metric's name ("rf.model_flop")."""
        out = []
        for number, key in self.keys.items():
            layer = self.layers.get(key.get("layer", 0))
            row = {"kernel": self.names.get(key.get("kernel", 0), ""), "op": self.names.get(key.get("op", 0), ""),
                   "node": self.names.get(key.get("node", 0), ""),
                   "signature": self.names.get(key.get("signature", 0), ""),
                   "layer": None if layer is None else layer.get("path", ""),
                   "model": "" if layer is None else self.model_name(layer),
                   "phase": PHASES[key.get("phase", 0)], "launches": self.launches.get(number, 0),
                   "line": self.line(key.get("line", 0)), "stack": self.functions(key.get("stack", 0))}
            for (other, metric), total in self.sums.items():
                if other == number:
                    row[self.metrics[metric]["name"]] = total["sum"]
            out.append(row)
        return out

    def diagnostic_ids(self):
        return [diagnostic.get("id", "") for diagnostic in self.diagnostics]


def read_trace(path, strict=True):
    """The trace in `path`. With strict=False a damaged end only sets .damage."""
    trace = Trace(path)
    try:
        for chunk in read_chunks(path):
            trace.add(chunk)
    except TraceError as error:
        if strict:
            raise
        trace.damage = str(error)
    return trace


def trace_files(folder):
    return sorted(glob.glob(os.path.join(folder, "**", "*.rfx"), recursive=True))


def read_traces(folder, strict=True):
    return [read_trace(path, strict) for path in trace_files(folder)]


def main(arguments):
    for path in arguments:
        for file in trace_files(path) if os.path.isdir(path) else [path]:
            trace = read_trace(file, strict=False)
            print(json.dumps({"path": file, "tier": trace.tier, "source": trace.source, "run": trace.run,
                              "models": trace.models, "layers": trace.layers, "steps": trace.steps,
                              "diagnostics": trace.diagnostics, "drops": trace.drops, "end": trace.end,
                              "damage": trace.damage}, indent=1))
            for row in trace.rows():
                print(json.dumps(row))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
