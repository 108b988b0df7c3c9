"""The 80 % intervals of expected times, from residuals of rows that no parameter has seen: those of calibration/fit."""
import collections
import math

ANY = "*"  # any GPU without measurements
# Standard deviations to either side: 1.28 has 80 % of a normal distribution whose variance is known. Student's t of eight
# degrees: four GPUs of a family, and those of the others at the same weight.
FEW_GPUS = 1.40
# Rows of a recording are alike: 80 % of the rows of a further one lie within what holds so many of the others'.
ALIKE = 0.9
SHARED, SHARED_CONVOLUTION_FP32, CONVOLUTION_FP32 = 0.34, 0.165, "2"  # SharedPart() of cli/report/keys/quantity.cc; ErrorGroup
SIZES = (("tiny", 0.0, 0.05), ("short", 0.05, 0.5), ("middle", 0.5, 2.0), ("long", 2.0, math.inf))  # ms, as SizeName() in expected.cc


def median(values):
    values = sorted(values)
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


class OfGroup:
    """Expected times of a group of operators: ErrorOfGroup of cli/report/keys/quantity.h."""

    def __init__(self):
        self.expected = self.below = self.above = self.squares = 0

    def add(self, calls, expected, low, high):
        self.expected += calls * expected
        self.below += calls * (expected - low)
        self.above += calls * (high - expected)
        self.squares += calls * ((high - low) / 2) ** 2

    def towards(self, side, shared):
        """The square of how far their sum may be off to a side, where `shared` is the part of the errors' variance that is common."""
        middle = (self.below + self.above) / 2
        if not middle:
            return 0
        leaning = ((side / middle) ** 2 - 1) * math.sqrt(self.squares) / middle
        return shared * side ** 2 + (1 - shared) * self.squares * (1 + leaning)


def groups_of(rows):
    """{group: OfGroup} of rows (group, calls, expected, low, high), the times those of a call. Each call counts as a launch key."""
    groups = collections.defaultdict(OfGroup)
    for group, *row in rows:
        groups[group].add(*row)
    return groups


def shared_part(group):
    return SHARED_CONVOLUTION_FP32 if group == CONVOLUTION_FP32 else SHARED


def of_sum(rows):
    """(expected, low, high) of a sum of rows as groups_of() has them, as the command makes it (Sums::AddExpected)."""
    groups = groups_of(rows).items()
    expected = sum(one.expected for _, one in groups)
    below, above = (math.sqrt(sum(one.towards(getattr(one, side), shared_part(group)) for group, one in groups))
                    for side in ("below", "above"))
    return expected, expected - below, expected + above


def quantile(values, q):
    values = sorted(values)
    at = q * (len(values) - 1)
    low = int(at)
    return values[low] + (at - low) * (values[min(low + 1, len(values) - 1)] - values[low])


def intervals(rows, folds, gpus, known):
    """{(gpu, family, parameter): (value, provenance)} of the 80 % intervals, from held-out residuals."""
    found = {}

    def put(gpu, family, size, low, high, what):
        found[gpu, family, "low_" + size] = (math.exp(min(low, -0.02)), "10 %% quantile of %s" % what)
        found[gpu, family, "high_" + size] = (math.exp(max(high, 0.02)), "90 %% quantile of %s" % what)

    def between(by_gpu):
        """Mean square of how far GPUs left out were off in the median."""
        return sum(median([r for _, r in one]) ** 2 for one in by_gpu) / len(by_gpu)

    def add_unseen(family, by_gpu, pooled):
        """A further GPU is off by as much as those left out were in the median, and its rows scatter as theirs do.

        Four GPUs of a family say little about how far off a fifth is, and families differ less in it than chance would
        make them: `pooled`, the mean of all families, counts as much as the family's own."""
        for size, least, most in SIZES:
            of_size = [[(ms, r) for ms, r in one if least <= ms < most] for one in by_gpu]
            parts = [one for one in of_size if len(one) >= 15]
            text = "GPUs held out: their medians and those of other families; the scatter within"
            if len(parts) < 2:
                parts, text = by_gpu, text + "; all sizes"
            scatter = [r - middle for one, middle in ((one, median([r for _, r in one])) for one in parts) for _, r in one]
            # Half of the width that 80 % have; algorithms of a library that are far off would rule a variance.
            within = ((quantile(scatter, 0.9) - quantile(scatter, 0.1)) / 2 / 1.28) ** 2
            width = FEW_GPUS * math.sqrt((between(parts) + pooled) / 2 + within)
            # Where a GPU is unlike the others, no variance says so: no less than holds 80 % of the rows.
            width = max(width, quantile([abs(r) for one in parts for _, r in one], 0.8))
            put(ANY, family, size, -width, width, "%d residuals: %s" % (len(scatter), text))

    def add(gpu, family, residuals, what, widen=1.0):
        for size, least, most in SIZES:
            part = [r for ms, r in residuals if least <= ms < most]
            text = what
            if len(part) < 40:
                part, text = [r for _, r in residuals], what + "; all sizes"
            if len(part) < 15:
                return
            put(gpu, family, size, quantile(part, 0.1) * widen, quantile(part, 0.9) * widen,
                "%d residuals: %s" % (len(part), text))

    def residuals(predicted, indices):
        return [(predicted[i], math.log(rows.ms[i] / predicted[i])) for i in indices if predicted.get(i, 0) > 0]

    by = {}
    for i in range(len(rows.rows)):
        if rows.useful[i]:
            by.setdefault((rows.gpu[i], rows.family[i]), []).append(i)
    for (gpu, family), indices in by.items():
        add(gpu, family, residuals(folds, indices), "shapes held out")
    unseen = {}
    for family in sorted({family for _, family in by}):
        every = [residuals(gpus, indices) for (_, f), indices in by.items() if f == family]
        unseen[family] = [one for one in every if len(one) >= 40] or [one for one in every if len(one) >= 15]
    variances = [between(by_gpu) for by_gpu in unseen.values() if len(by_gpu) > 1]
    for family, by_gpu in unseen.items():
        if len(by_gpu) > 1:
            add_unseen(family, by_gpu, sum(variances) / len(variances))
        else:
            seen = [one for (gpu, f), indices in by.items() if f == family for one in residuals(folds, indices)]
            add(ANY, family, seen, "shapes held out on the only GPU; twice as wide for another", 2.0)
    add_recorded(rows, folds, found, put)
    for family in known:
        for name in [kind + "_" + size for kind in ("low", "high") for size, _, _ in SIZES]:
            if (ANY, family, name) not in found:
                # Where there is nothing of a family, a similar one stands for it.
                source = {"bmm_tensor": "bmm_fp32", "batch_norm": "layer_norm", "other": "bmm_fp32",
                          "layer_norm_backward": "layer_norm"}.get(family, "conv_fp32")
                if (ANY, source, name) not in found:
                    continue
                value, text = found[ANY, source, name]
                found[ANY, family, name] = (value ** 1.5, "as " + source + "; half as wide again: " + text)
    return found


def add_recorded(rows, predicted, found, put):
    """Recorded kernels, each without its own recording: of two or three recordings of a GPU the signs say nothing, so the
    interval is as wide to either side. Those of less than 0.05 ms are all that is known of kernels so short."""
    by = {}
    for i in predicted:
        if rows.recording[i] and predicted[i] > 0 and rows.useful[i]:
            by.setdefault(rows.family[i], []).append((rows.gpu[i], predicted[i], abs(math.log(rows.ms[i] / predicted[i]))))
    for family, residuals in by.items():
        if len(residuals) < 15:
            continue
        recorded = {gpu for gpu, _, _ in residuals}
        others = {gpu for gpu, f, _ in found if f == family} | {ANY}
        for size, least, most in SIZES:
            part = [(gpu, r) for gpu, ms, r in residuals if least <= ms < most]
            text = "%d recorded kernels, each without its recording" % len(part)
            few = len(part) < 15
            if few:
                part, text = [(gpu, r) for gpu, _, r in residuals], "%d recorded kernels; all sizes" % len(residuals)
            if few and (ANY, family, "low_" + size) in found:  # operators of that size say more than kernels of others
                continue
            for gpu in recorded | (others if size == "tiny" else set()):
                width = quantile([r for _, r in part], ALIKE)
                if sum(one == gpu for one, _ in part) < 15:  # others' kernels say less of it
                    width = max(width, quantile([r for _, _, r in residuals], ALIKE))
                put(gpu, family, size, -width, width, text)


def with_intervals(rows, predicted, families, part, others=None):
    """For each row the held-out time and its interval, in which the row's own fold, GPU or recording had no part.

    `others`: the residuals that the interval is of, where those are not `predicted`'s."""
    parts = {}
    every = predicted if others is None else others
    for i in sorted(predicted):
        parts.setdefault(getattr(rows, part)[i], []).append(i)
    result = [(0, 0, 0)] * len(rows.rows)
    for indices in parts.values():
        rest = dict(every)
        for i in indices:
            rest.pop(i, None)
        found = intervals(rows, {} if part == "gpu" else rest, rest if part == "gpu" else {}, sorted(families))
        for i in indices:
            ms = predicted.get(i, 0)
            size = next(name for name, _, most in SIZES if ms < most)
            ends = []
            for end in ("low_", "high_"):
                keys = [(gpu, rows.family[i], end + size) for gpu in (rows.gpu[i], ANY)]
                ends.append(next((found[key][0] for key in keys if key in found), None))
            result[i] = (ms, ms * ends[0], ms * ends[1]) if None not in ends else (ms, 0, 0)
    return result
