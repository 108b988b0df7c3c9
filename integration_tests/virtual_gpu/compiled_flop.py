"""What Inductor's graphs compute more, or less, than the operators of an eager run: each difference with its reason.

    differences(network, version, eager, compiled) -> {phase: {reason: FLOP}}
The rows of two reports by kernel: the eager one says which operators ran, and their operands' shapes. What is not named here
has the FLOP in compiled code that its operator has in an eager run; conversions, copies and comparisons have none in either.
Found by reading the graphs in the comments of the generated modules.
"""
import collections
import re


def shapes(row):
    """Of the tensors of a row's signature, "f32:nhwc[4,64,8,8] f32[64]"."""
    return [[int(size) for size in text.split(",") if size] for text in re.findall(r"\[([\d,]*)\]", row["signature"] or "")]


def product(sizes):
    count = 1
    for size in sizes:
        count *= size
    return count


def batch_norm(row):
    # 1/sqrt(variance + eps): 3; the running mean 3, the running variance 4.
    yield "forward", "batch norm: each channel's statistics", 10 * shapes(row)[0][1]


def batch_norm_backward(row):
    # The table has 9 for each element. The graph has 8, because 1/sqrt is folded into factors of the channels: of these it
    # has 6; and two sums of n numbers have n - 1 additions.
    elements, channels = product(shapes(row)[0]), shapes(row)[0][1]
    yield "backward", "batch norm: factors of the channels", 4 * channels - elements


def layer_norm(row):
    # 1/sqrt(variance + eps)
    yield "forward", "layer norm: each row's statistics", 3 * product(shapes(row)[0][:-1])


def layer_norm_backward(row):
    # The table has 13 for each element, of which 2 are (x - mean)/sqrt, which is kept; one more multiplies by the width. Two
    # sums leave a number a row, two a number a column.
    width, rows = shapes(row)[0][-1], product(shapes(row)[0][:-1])
    yield "backward", "layer norm: (x - mean)/sqrt is kept", -width * rows - 2 * rows - 2 * width


def bias_of_convolution(row):
    # The operator's count is that of the products.
    grad = shapes(row)[0]
    yield "backward", "convolution: the bias's gradient is a sum of its own", product(grad) - grad[1]


def bias_of_product(row):
    # The table has none for the bias that addmm adds.
    _, left, right = shapes(row)
    yield "forward", "addmm: the next kernel adds the bias", left[0] * right[1]


RULES = {"aten::cudnn_batch_norm": batch_norm, "aten::native_batch_norm": batch_norm,
         "aten::cudnn_batch_norm_backward": batch_norm_backward, "aten::native_batch_norm_backward": batch_norm_backward,
         "aten::native_layer_norm": layer_norm, "aten::native_layer_norm_backward": layer_norm_backward}

ANY = (0, 0), (99, 0)
# By network: the layers of which a backward computes the normalised values again from the operand, instead of reading them: in
# the versions from and up to those named, the FLOP for each element. 4 are a batch norm with weight and bias, 2 a layer norm's
# (x - mean)/sqrt, 3 the same with the addition in front of it.
AGAIN = {"resnet18": [((2, 15), (99, 0), "bn1", 4)],
         "resnet50": [((2, 15), (99, 0), "bn1", 4)],
         "unet": [((2, 15), (99, 0), "down.0.4", 4), ((2, 15), (99, 0), "down.1.4", 4)],
         "gpt_amp": [(*ANY, "blocks.0.before", 3)],
         "vit": [(*ANY, "encoder.layers.encoder_layer_0.ln_1", 3)],
         "transformer": [(*ANY, "blocks.0.norm1", 2), (*ANY, "blocks.0.norm2", 3)]}


def again(network, version, layer):
    return sum(flop for first, last, of, flop in AGAIN.get(network, ()) if of == layer and first <= version <= last)


def moved(network, version, row):
    """Of a row of the eager run's, what is computed in the other phase, or in both."""
    sizes = shapes(row)[:1] or [[0]]
    elements, layer = product(sizes[0]), row["layer"]
    if in_list := re.fullmatch(r"\d+\*\w+\{(\d+)\}", row["signature"] or ""):
        elements = int(in_list[1])
    if row["op"] in ("aten::cudnn_batch_norm", "aten::native_batch_norm"):
        yield "backward", "normalised again", again(network, version, layer) * elements
    elif row["op"] == "aten::native_layer_norm":
        flop, rows = again(network, version, layer), elements // sizes[0][-1]
        yield "backward", "normalised again", flop * elements
        # The backward's factor of each row.
        yield "backward" if flop else "forward", "layer norm: 1/sqrt divided by the width", rows
        if network == "vit" and flop == 0 and version >= (2, 9):
            # The operand is copied into another layout in front of the norm, and both are normalised: one is kept.
            yield "forward", "normalised twice", 2 * elements
    elif row["op"] == "aten::sigmoid_backward":
        # y * (1 - y), of which only the product with the gradient is left.
        yield "forward", "sigmoid: its derivative is kept", 2 * elements
        yield "backward", "sigmoid: its derivative is kept", -2 * elements
    elif row["op"] == "aten::cat" and network == "transformer" and row["phase"] == "backward" and version >= (2, 15):
        # Gradients of query, key and value, with zeros around each.
        yield "backward", "unbind: gradients are added instead of stacked", 2 * elements


def differences(network, version, eager, compiled):
    biased = {(row["model"], row["layer"]) for row in eager
              if row["op"] == "aten::convolution" and row["phase"] == "forward" and len(shapes(row)) > 2}
    apart = {(row["model"], row["layer"], *map(tuple, shapes(row)[:2])) for row in compiled
             if row["op"] == "aten::mm" and row["phase"] == "forward"}
    found = collections.defaultdict(collections.Counter)
    for row in eager:
        if row["phase"] not in ("forward", "backward"):
            continue
        rule = RULES.get(row["op"])
        if row["op"] == "aten::convolution_backward" and (row["model"], row["layer"]) in biased:
            rule = bias_of_convolution
        if row["op"] == "aten::addmm" and (row["model"], row["layer"], *map(tuple, shapes(row)[1:])) in apart:
            rule = bias_of_product
        for phase, reason, flop in (*(rule(row) if rule else ()), *moved(network, version, row)):
            found[phase][reason] += row["launches"] * flop
    return found
