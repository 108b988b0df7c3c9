"""What recordings of whole networks say of a chip: by how much the kernels of a family take longer than the formulas say,
and how far a network is off that they were not asked for.

The formulas' parameters come from operators that were timed one by one, mostly on other chips. A network's kernels differ
from those as one: another library, other layouts, neighbours in the caches. So each family of the chip has one number more,
a scale: the mean of the networks' ratios of measured to expected time, without what a kernel takes beside its work, each with
the root of its time as its weight. It is closed, so that it can be had without each network in turn. A board that has networks of its own has a value of its own, to
which those of the chip's other boards count less: their memory is another.
"""
import collections
import csv
import gzip
import io
import math
import os
import pathlib
import subprocess
import tempfile

from intervals import SIZES, quantile
from rows import CHIPS, DATA, GPUS

# (family, parameter) that have a scale: those whose formulas were fitted to no times of such a chip.
CONVOLUTIONS = tuple("conv_" + unit + gradient for unit in ("fp32", "tensor", "tf32") for gradient in ("", "_wgrad"))
SCALED = {**{family: ("scale", "scale_channels_first", "scale_grouped") for family in (*CONVOLUTIONS, "conv_depthwise")},
          "batch_norm": ("scale", "scale_channels_first", "scale_channels_last", "scale_native"), "layer_norm_backward": ("scale",),
          "pool": ("scale",), "pool_backward": ("scale",), "attention": ("scale_fp32",),
          "attention_backward": ("scale", "scale_fp32"), "linear_tensor": ("scale", "scale_tf32"),
          "bmm_tensor": ("scale_tf32",)}
# Of these no chip has times of single operators: what recordings of some say is better than nothing on the others, and the
# older recordings (recorded_kernels.csv.gz) are asked as well.
EVERYWHERE = ("layer_norm_backward", "pool", "pool_backward")
# Products whose rows do not lie as cuBLAS's fast kernels want them compute longer: a parameter of the formula.
MISALIGNED = {"scale_misaligned": "misaligned", "scale_narrow": "misaligned_narrow"}
LONG_MS = 0.1
OF_OTHER_BOARDS = 0.2  # the weight of their networks
FEW, ENOUGH = 15, 40  # rows: for a family of its own, and for each of its sizes


SAID = ("ideal_ms", "expected_ms", "low_ms", "high_ms", "launch_ms", "family", "scale", "group")  # by estimate_rows


def read_rows(name="network_kernels.csv.gz"):
    with gzip.open(DATA / name, "rt", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def estimated(tool, calibration, rows):
    """The rows with what the model says of them: expected_ms, low_ms, high_ms, launch_ms, family, scale and group; empty: nothing."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows.csv")
        with open(path, "w", encoding="utf-8") as file:
            names = [name for name in rows[0] if name not in SAID]
            out = csv.DictWriter(file, names, extrasaction="ignore", lineterminator="\n")
            out.writeheader()
            out.writerows(rows)
        text = subprocess.run([tool, "--calibration", calibration, path], capture_output=True, text=True, check=True).stdout
    return list(csv.DictReader(io.StringIO(text)))


class Row:
    def __init__(self, text):
        self.gpu, self.network, self.calls = text["gpu"], text["recording"], int(text["calls"])
        self.known = bool(text["expected_ms"])
        self.chip = GPUS[self.gpu]["chip"]
        self.ms = float(text["measured_ms"])
        if self.known:
            self.family, self.scale, self.group = text["family"], text["scale"], text["group"]
            self.expected, self.low, self.high, self.launch = (
                float(text[name]) for name in ("expected_ms", "low_ms", "high_ms", "launch_ms"))
        self.name = self.gpu + " " + self.network

    @property
    def scaled(self):
        return self.scale in SCALED.get(self.family, ())


def scales_of(rows):
    """{(board or chip, family, parameter): (value, networks)}"""
    sums = collections.defaultdict(lambda: collections.defaultdict(lambda: [0.0, 0.0]))
    for row in rows:
        if row.known and row.scaled:
            of = sums[row.chip, row.family, row.scale][row.gpu, row.network]
            of[0] += row.calls * (row.ms - row.launch)
            of[1] += row.calls * (row.expected - row.launch)
    found = {}
    for (chip, family, scale), all_networks in sums.items():
        networks = {name: of for name, of in all_networks.items() if min(of) > 0}
        if not networks:
            continue
        for name in (chip, *{gpu for gpu, _ in networks}):
            weights = [(math.log(ms / expected), math.sqrt(ms) * (1 if name in (chip, gpu) else OF_OTHER_BOARDS))
                       for (gpu, _), (ms, expected) in networks.items()]
            mean = sum(ratio * weight for ratio, weight in weights) / sum(weight for _, weight in weights)
            found[name, family, scale] = math.exp(mean), len(networks)
    return found


def scale_of(scales, row):
    chips = scales.get((row.chip, row.family, row.scale), (1, 0))
    return scales.get((row.gpu, row.family, row.scale), chips)[0] if row.scaled else 1


def size_of(ms):
    return next(size for size, least, most in SIZES if least <= ms < most)


def ends_of(residuals):
    low, high = quantile(residuals, 0.1), quantile(residuals, 0.9)
    return math.exp(min(low, -0.02)), math.exp(max(high, 0.02))


class Ends:
    """The 80 % interval of rows of a chip by family and size, from residuals of networks that were left out."""

    def __init__(self, residuals):
        self.by = collections.defaultdict(list)  # (chip, family, size or None), (chip, group)
        for row, expected in residuals:
            ratio = math.log(row.ms / expected)
            for key in ((row.chip, row.family, size_of(expected)), (row.chip, row.family, None), (row.chip, row.group)):
                self.by[key].append(ratio)

    def of(self, chip, family, group, size):
        """((low, high), provenance), or nothing where there are few rows."""
        for key, least, text in (((chip, family, size), ENOUGH, ""), ((chip, family, None), FEW, "; all sizes"),
                                 ((chip, group), FEW, "; of operators alike")):
            found = self.by.get(key, ())
            if len(found) >= least:
                return ends_of(found), "%d residuals: networks held out%s" % (len(found), text)
        return None


def held_out(rows):
    """[(row, expected without its network, with its scale)]"""
    result = []
    for network in dict.fromkeys(row.name for row in rows):
        scales = scales_of([row for row in rows if row.name != network])
        for row in rows:
            if row.name == network and row.known:
                result.append((row, row.launch + (row.expected - row.launch) * scale_of(scales, row)))
    return result


def with_values(calibration, values, folder):
    """The path of a calibration that has the values {(gpu, family, parameter): (value, ...)} as well."""
    path = os.path.join(folder, "calibration.csv")
    extra = "".join("%s,%s,%s,%g,1,,\n" % (*key, value[0]) for key, value in values.items())
    pathlib.Path(path).write_text(pathlib.Path(calibration).read_text(encoding="utf-8") + extra, encoding="utf-8")
    return path


def is_misaligned(text):
    return text["family"] == "linear_tensor" and text["scale"] in MISALIGNED


def misaligned(tool, calibration, texts):
    """{(chip, family, parameter): (value, provenance)}: how much longer a chip computes products on tensor cores whose rows do
    not begin at multiples of 16 bytes, or of 4, so that those of its networks that are long take together as long as measured.
    (Short ones are not bound by computing.)"""
    found = {}
    long = [text for text in texts if is_misaligned(text) and float(text["measured_ms"]) > LONG_MS]
    for chip, scale in dict.fromkeys((GPUS[text["gpu"]]["chip"], text["scale"]) for text in long):
        rows = [text for text in long if GPUS[text["gpu"]]["chip"] == chip and text["scale"] == scale]
        measured = sum(float(row["measured_ms"]) for row in rows)
        key = chip, "linear_tensor", MISALIGNED[scale]
        low, high = 0.0, 16.0
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(16):
                middle = (low + high) / 2
                path = with_values(calibration, {key: (middle,)}, folder)
                expected = sum(float(row["expected_ms"]) for row in estimated(tool, path, rows))
                low, high = (middle, high) if expected < measured else (low, middle)
        found[key] = low, "%d long products of recorded networks" % len(rows)
    return found


def misaligned_unseen(tool, calibration, texts):
    """`texts`, with those of such products as they are expected by what all other networks say of them."""
    result = list(texts)
    for network in dict.fromkeys((text["gpu"], text["recording"]) for text in texts if is_misaligned(text)):
        own = [i for i, text in enumerate(texts) if (text["gpu"], text["recording"]) == network and is_misaligned(text)]
        others = misaligned(tool, calibration, [text for text in texts if (text["gpu"], text["recording"]) != network])
        with tempfile.TemporaryDirectory() as folder:
            path = with_values(calibration, others, folder)
            for i, text in zip(own, estimated(tool, path, [texts[i] for i in own])):
                result[i] = text
    return result


def add_recorded_boards(values, provenance, residuals):
    """The intervals of boards that have older recordings, and whose chip has no networks here. Of one recording nothing says
    how far off a further one of its board is. Kernels of networks say it, each network held out; they are another chip's."""
    chips = {row.chip for row, _ in residuals}
    by = collections.defaultdict(list)
    for row, expected in residuals:
        by[row.family, size_of(expected)].append(abs(math.log(row.ms / expected)))
    for (family, size), found in by.items():
        if len(found) < ENOUGH:
            continue
        width = max(quantile(found, 0.8), 0.02)
        for gpu in {key[0] for key in values if key[1:] == ("gpu", "kernel_us")} & GPUS.keys():
            if GPUS[gpu]["chip"] not in chips and (gpu, family, "rows") in values:
                for name, value in (("low_" + size, -width), ("high_" + size, width)):
                    values[gpu, family, name] = math.exp(value)
                    provenance[gpu, family, name] = "%d residuals: networks held out; of another chip" % len(found)


def add_networks(values, provenance, texts, older):
    """Adds what the networks say to the values of the calibration. `texts`: their rows, by estimated(); `older`: those of
    recorded_kernels.csv. Returns the text of held_out_networks.csv, a line a row."""
    rows = [Row(text) for text in texts]
    others = [row for row in map(Row, (text for text in older if text["gpu"] in GPUS)) if row.known and row.family in EVERYWHERE]
    residuals = held_out(rows)
    count = collections.Counter((row.chip, row.family) for row in rows if row.known)
    group = {(row.chip, row.family): row.group for row in rows if row.known}

    def put(key, value, text):
        values[key], provenance[key] = value, text

    def families(family):  # a convolution's backward has two, and its row bears the first
        return (family, family.replace("_wgrad", "_dgrad")) if family.endswith("_wgrad") else (family,)

    scales = scales_of(rows + others)
    for (name, family, scale), (value, networks) in scales.items():
        for one in families(family):
            put((name, one, scale), value, "measured over expected in %d recorded networks" % networks)
    for family in EVERYWHERE:
        chips = {name: value for (name, f, _), (value, _) in scales.items() if f == family and name in CHIPS}
        mean = math.exp(sum(map(math.log, chips.values())) / len(chips))
        put(("*", family, "scale"), mean, "mean of recorded networks on " + "; ".join(sorted(chips)))
    ends = Ends(residuals)
    for (chip, family), number in count.items():
        for one in families(family):
            put((chip, one, "rows"), number, "rows of recorded networks")
            for size, _, _ in SIZES:
                if found := ends.of(chip, family, group[chip, family], size):
                    for name, value in zip(("low_" + size, "high_" + size), found[0]):
                        put((chip, one, name), value, found[1])
                        # A board's own interval is of the few kernels of older recordings.
                        for board in (gpu for gpu, row in GPUS.items() if row["chip"] == chip):
                            values.pop((board, one, name), None)
    add_recorded_boards(values, provenance, residuals)
    # The interval of a row, from networks but its own.
    by_row = {}
    for network in dict.fromkeys(row.name for row in rows):
        others = Ends([(row, expected) for row, expected in residuals if row.name != network])
        for row, expected in residuals:
            if row.name == network:
                found = others.of(row.chip, row.family, row.group, size_of(expected))
                low, high = found[0] if found else (row.low / row.expected, row.high / row.expected)
                by_row[id(row)] = expected, expected * low, expected * high
    text = "network_held_out_ms,network_held_out_low_ms,network_held_out_high_ms\n"
    for row in rows:
        text += ",".join("%.5g" % value for value in by_row[id(row)]) + "\n" if row.known else ",,\n"
    return text
