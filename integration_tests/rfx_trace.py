"""Reads rfinject traces (*.rfx) with nothing but Python's standard library.

An independent second reader of the format in proto/FORMAT.md: the tests of the injected library use it, so that
they need neither the command nor a protobuf package. Field numbers are those of proto/rfinject/v1/trace.proto.

    trace = read_trace("run.rfx")        # one process
    for trace in read_traces("folder"):  # every *.rfx below
        trace.layers[3]["path"], trace.rows()

As a program: python3 rfx_trace.py PATH... prints what is in the files.
"""

import glob
import json
import os
import struct
import sys

FILE_MAGIC = b"RFINJECT"
FRAME_MAGIC = 0x43584652
FORMAT_MAJOR = 1
PHASES = ["other", "forward", "backward", "optimizer", "data", "communication", "recompute"]
SOURCES = ["unspecified", "measured", "estimated", "imported", "none"]
TIERS = ["?", "A", "B", "C", "D", "E", "F"]
SEVERITIES = ["info", "warning", "error"]

# field number: (name, kind[, nested message]); kinds: u (varint), i (int64), s (string), b (bool), d (double),
# m (message); a trailing * is repeated.
METRIC_STATS = {1: ("metric", "u"), 2: ("n", "u"), 3: ("sum", "u"), 4: ("sum_high", "u"), 5: ("sum_squares", "u"),
                6: ("sum_squares_high", "u"), 7: ("min", "u"), 8: ("max", "u")}
PROCESS = {1: ("rfinject_version", "s"), 2: ("host", "s"), 3: ("pid", "u"), 4: ("argv", "s*"),
           5: ("start_unix_ns", "i"), 6: ("python_version", "s"), 7: ("python_executable", "s"),
           8: ("torch_version", "s"), 9: ("torchvision_version", "s"), 10: ("cuda_version", "s"),
           11: ("cudnn_version", "s"), 12: ("driver_version", "s"), 13: ("cupti_version", "s"),
           14: ("cupti_path", "s"), 15: ("rank", "u"), 16: ("local_rank", "u"), 17: ("world_size", "u"),
           18: ("job_id", "s"), 19: ("os", "s"), 20: ("cpu", "s"), 21: ("cpus", "u"), 22: ("memory_bytes", "u"),
           23: ("tier_reason", "s")}
DEVICE = {1: ("index", "u"), 2: ("name", "s"), 3: ("chip", "s"), 4: ("cc_major", "u"), 5: ("cc_minor", "u"),
          6: ("sm_count", "u"), 7: ("sm_clock_khz", "u"), 8: ("memory_clock_khz", "u"), 9: ("memory_bus_bits", "u"),
          10: ("memory_bytes", "u"), 11: ("l2_bytes", "u"), 12: ("uuid", "s"), 13: ("mig", "b")}
POLICY = {1: ("matmul_tf32", "u"), 2: ("cudnn_tf32", "u"), 3: ("cudnn_benchmark", "u"),
          4: ("cudnn_deterministic", "u"), 5: ("autocast_dtype", "s"), 6: ("grad_enabled_steps", "u")}
RUN = {1: ("id", "u"), 2: ("source", "u"), 3: ("tier", "u"), 4: ("process", "m", PROCESS),
       5: ("device", "m*", DEVICE), 6: ("policy", "m", POLICY), 7: ("processes", "u"), 8: ("rank", "u*"),
       9: ("batch_size", "u"), 10: ("estimated_gpu", "s"), 11: ("collector", "s"), 12: ("collector_version", "s")}
NAME = {1: ("id", "u"), 2: ("text", "s")}
MODEL = {1: ("id", "u"), 2: ("class_name", "s"), 3: ("parameters", "u"), 4: ("parameter_bytes", "u"),
         5: ("trainable_parameters", "u")}
LAYER = {1: ("id", "u"), 2: ("model", "u"), 3: ("path", "s"), 4: ("class_name", "s"), 5: ("parameters", "u"),
         6: ("parameter_bytes", "u"), 7: ("input_shape", "s"), 8: ("output_shape", "s"), 9: ("parent", "u"),
         10: ("training", "b")}
METRIC = {1: ("id", "u"), 2: ("name", "s"), 3: ("unit", "s"), 4: ("scale", "d")}
KEY = {1: ("id", "u"), 2: ("kernel", "u"), 3: ("op", "u"), 4: ("layer", "u"), 5: ("phase", "u"),
       6: ("signature", "u"), 7: ("grid", "u*"), 8: ("block", "u*"), 9: ("dynamic_shared_bytes", "u"),
       10: ("device", "u"), 11: ("run", "u"), 12: ("node", "u")}
KEY_STATS = {1: ("key", "u"), 2: ("launches", "u"), 3: ("metric", "m*", METRIC_STATS)}
STEP = {1: ("index", "u"), 2: ("start_unix_ns", "i"), 3: ("duration_ns", "u"), 4: ("run", "u"), 5: ("measured", "b"),
        6: ("armed_group", "u"), 7: ("memory_bytes", "u"), 8: ("memory_peak_bytes", "u"), 9: ("samples", "u")}
PM_WINDOW = {1: ("run", "u"), 2: ("step", "u"), 3: ("start_unix_ns", "i"), 4: ("duration_ns", "u"), 5: ("samples", "u"),
             6: ("dram_read_bytes", "u"), 7: ("dram_write_bytes", "u"), 8: ("has_tensor", "b"),
             9: ("tensor_active_ns", "u"), 10: ("bin_ns", "u"), 11: ("bin_dram_bytes", "u*"),
             12: ("bin_tensor_permille", "u*")}
DIAGNOSTIC = {1: ("severity", "u"), 2: ("id", "s"), 3: ("text", "s"), 4: ("remedy", "s"), 5: ("unix_ns", "i"),
              6: ("run", "u")}
DROP = {1: ("what", "s"), 2: ("count", "u"), 3: ("run", "u")}
END = {1: ("reason", "s"), 2: ("unix_ns", "i")}
CHUNK = {1: ("run", "m*", RUN), 2: ("name", "m*", NAME), 3: ("model", "m*", MODEL), 4: ("layer", "m*", LAYER),
         5: ("metric", "m*", METRIC), 6: ("key", "m*", KEY), 7: ("stats", "m*", KEY_STATS), 8: ("step", "m*", STEP),
         9: ("diagnostic", "m*", DIAGNOSTIC), 10: ("drop", "m*", DROP), 12: ("end", "m", END),
         13: ("pm_window", "m*", PM_WINDOW)}


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


def _varint(data, offset):
    value = shift = 0
    while True:
        byte = data[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, offset
        shift += 7


def decode(data, schema):
    """The fields of one message as a dict; fields that are not set are absent."""
    out = {}
    offset = 0
    while offset < len(data):
        tag, offset = _varint(data, offset)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            raw, offset = _varint(data, offset)
        elif wire == 1:
            raw = data[offset:offset + 8]
            offset += 8
        elif wire == 2:
            size, offset = _varint(data, offset)
            if offset + size > len(data):
                raise ValueError("a length-delimited field passes its message's end")
            raw = data[offset:offset + size]
            offset += size
        elif wire == 5:
            raw = data[offset:offset + 4]
            offset += 4
        else:
            raise ValueError("wire type %d" % wire)
        field = schema.get(number)
        if field is None:
            continue
        name, kind = field[0], field[1]
        base = kind[0]
        if base == "u" and wire == 2:  # packed
            position, values = 0, []
            while position < len(raw):
                value, position = _varint(raw, position)
                values.append(value)
            out.setdefault(name, []).extend(values)
            continue
        if base == "i":
            value = raw - (1 << 64) if raw >> 63 else raw
        elif base == "b":
            value = bool(raw)
        elif base == "s":
            value = raw.decode("utf-8")
        elif base == "d":
            value = struct.unpack("<d", raw)[0]
        elif base == "m":
            value = decode(raw, field[2])
        else:
            value = raw
        if kind.endswith("*"):
            out.setdefault(name, []).append(value)
        else:
            out[name] = value
    return out


def read_chunks(path):
    """Every whole chunk of the file, in order. Raises TraceError where something is damaged."""
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
            yield decode(payload, CHUNK)
        except (ValueError, IndexError) as error:
            raise TraceError("%s: offset %d: %s" % (path, offset, error)) from None
        offset += 16 + length
        sequence += 1


def _merge_facts(old, new):
    for key, value in new.items():
        if isinstance(value, dict):
            _merge_facts(old.setdefault(key, {}), value)
        else:
            old[key] = value


class Trace:
    """What the chunks of one file say, added up."""

    def __init__(self, path):
        self.path = path
        self.run = {}          # facts of run 1, merged
        self.names = {}        # id: text
        self.models = {}       # id: dict
        self.layers = {}       # id: dict
        self.metrics = {}      # id: dict
        self.keys = {}         # id: dict
        self.launches = {}     # key id: launches
        self.sums = {}         # (key id, metric id): {"n", "sum", "min", "max"}
        self.steps = []
        self.diagnostics = []
        self.pm_windows = []
        self.drops = {}        # what: count
        self.end = None        # {"reason": …}, or None when the process was cut off
        self.damage = ""       # why reading stopped early, or ""

    def add(self, chunk):
        for run in chunk.get("run", []):
            _merge_facts(self.run, run)
        for name in chunk.get("name", []):
            self.names[name["id"]] = name.get("text", "")
        for kind, table in (("model", self.models), ("layer", self.layers), ("metric", self.metrics),
                            ("key", self.keys)):
            for message in chunk.get(kind, []):
                _merge_facts(table.setdefault(message["id"], {}), message)
        for stats in chunk.get("stats", []):
            key = stats["key"]
            self.launches[key] = self.launches.get(key, 0) + stats.get("launches", 0)
            for metric in stats.get("metric", []):
                total = self.sums.setdefault((key, metric["metric"]), {"n": 0, "sum": 0, "min": None, "max": 0})
                if metric.get("n", 0) == 0:
                    continue
                total["n"] += metric["n"]
                total["sum"] += metric.get("sum", 0) + (metric.get("sum_high", 0) << 64)
                low = metric.get("min", 0)
                total["min"] = low if total["min"] is None else min(total["min"], low)
                total["max"] = max(total["max"], metric.get("max", 0))
        self.steps += chunk.get("step", [])
        self.diagnostics += chunk.get("diagnostic", [])
        self.pm_windows += chunk.get("pm_window", [])
        for drop in chunk.get("drop", []):
            self.drops[drop["what"]] = self.drops.get(drop["what"], 0) + drop.get("count", 0)
        if "end" in chunk:
            self.end = chunk["end"]

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

    def rows(self):
        """One dict per launch key: kernel, op, node, signature, layer (path, or None), model, phase, launches and
        every metric's sum under the metric's name ("rf.model_flop")."""
        out = []
        for number, key in self.keys.items():
            layer = self.layers.get(key.get("layer", 0))
            row = {"kernel": self.names.get(key.get("kernel", 0), ""), "op": self.names.get(key.get("op", 0), ""),
                   "node": self.names.get(key.get("node", 0), ""),
                   "signature": self.names.get(key.get("signature", 0), ""),
                   "layer": None if layer is None else layer.get("path", ""),
                   "model": "" if layer is None else self.model_name(layer),
                   "phase": PHASES[key.get("phase", 0)], "launches": self.launches.get(number, 0)}
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
