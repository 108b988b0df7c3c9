"""The rows that calibration/fit is made from: operators that others timed, and kernels of recordings."""
import csv
import gzip
import io
import pathlib
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT / "calibration" / "data"
FOLDS = 5
SHAPE = ("op", "dtype", "pass", "b", "m", "k", "n", "rows", "cols", "c_in", "c_out", "kh", "kw", "h", "w", "sh", "sw",
         "ph", "pw")
ELEMENTWISE = ("add", "mul", "div", "pow", "addu", "mulu", "divu", "powu", "relu", "gelu", "tanh")


def read_table(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


CHIPS = {row["chip"]: row for row in read_table(ROOT / "gpus" / "chips.csv")}
# Boards of other vendors, whose chips are not in that table, are for recordings only: nothing is estimated for them.
GPUS, VENDORS = {}, {}
for board in read_table(ROOT / "gpus" / "gpus.csv"):
    (GPUS if board["chip"] in CHIPS else VENDORS)[board["gpu"]] = board


def family_of(row):
    op, tensor = row["op"], row["dtype"] != "fp32"
    if op in ELEMENTWISE:
        return "elementwise"
    if op == "linear" or op == "bmm":
        return op + ("_tensor" if tensor else "_fp32")
    if op == "conv":
        tensor = tensor and float(row["c_in"]) % 8 == 0 and float(row["c_out"]) % 8 == 0
        if row["dtype"] not in ("fp32", "tf32") and float(row["c_in"]) == 1:
            return "conv_single_wgrad" if row["pass"] == "wgrad" else "conv_single"
        name = "conv_fp32" if not tensor else "conv_tf32" if row["dtype"] == "tf32" else "conv_tensor"
        return name if row["pass"] == "forward" else name + "_" + row["pass"]
    return op


# Families of recorded kernels that parameters are fitted to; the others are held against them only.
SMALL_BYTES, FEW_SMALL = 2e6, 5  # traffic of kernels that say what one takes that does nothing; so many of a recording
RECORDED = ("elementwise", "reduction", "linear_fp32", "bmm_fp32", "softmax", "layer_norm", "linear_tensor", "bmm_tensor",
            "attention", "conv_few", "scatter")


class Rows:
    """`families`: of the recorded kernels, as the model has them."""

    def __init__(self, families=(), recorded=True):
        families = list(families)
        with gzip.open(DATA / "operator_times.csv.gz", "rt", encoding="utf-8") as file:
            self.rows = list(csv.DictReader(file))
        self.count = len(self.rows)  # of operators that others timed; recorded kernels follow
        with gzip.open(DATA / "recorded_kernels.csv.gz", "rt", encoding="utf-8") if recorded else io.StringIO() as file:
            # Boards of another vendor are looked at, and nothing is fitted to them.
            self.rows += list(csv.DictReader(file))
        self.family = [family_of(row) for row in self.rows[:self.count]] + families
        self.known = [i for i, family in enumerate(self.family) if family]
        self.recording = [row.get("recording") for row in self.rows]
        self.gpu = [row["gpu"] for row in self.rows]
        self.ms = [float(row["measured_ms"]) for row in self.rows]
        self.kernel = [row["timed_by"] != "events" for row in self.rows]
        # A shape is in the same fold on every GPU, and on each of its passes.
        self.fold = [zlib.crc32(self.shape(row).encode()) % FOLDS for row in self.rows]
        # Shorter times are mostly those of the event and the launch.
        self.least = {}
        for gpu, family, ms in zip(self.gpu, self.family, self.ms):
            self.least[gpu, family] = min(ms, self.least.get((gpu, family), ms))
        # The model takes TF32's convolutions of few channels for those of FP32; its parameters are not to be fitted to them.
        odd = [row.get("dtype") == "tf32" and "fp32" in family for row, family in zip(self.rows, self.family)]
        self.useful = [ms > (0.02 if kernel else 0.15) and not o for ms, kernel, o in zip(self.ms, self.kernel, odd)]
        for i in range(self.count, len(self.rows)):
            self.useful[i] = self.gpu[i] in GPUS and self.family[i] in RECORDED

    @staticmethod
    def shape(row):
        return row["signature"] if "signature" in row else "|".join(row[k] for k in SHAPE if k != "pass")
