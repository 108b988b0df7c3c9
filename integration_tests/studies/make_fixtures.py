#!/usr/bin/env python3
"""Writes what studies_test.py and the golden test read: one CSV in ncu's shape for each row of the studies' tables.

    make_fixtures.py FOLDER

The studies published sums, not profiles. So the kernels here are made up: names as cuDNN, cuBLAS and PyTorch give them
on that GPU, and numbers whose sums are exactly the published ones (PUBLISHED). Nothing but the sums, the names and the
choice of counters (CUDA cores only, as the studies had) may be read out of them.
"""
import pathlib
import sys

V100, A100 = "V100-SXM2-16GB", "A100-SXM4-40GB"
# (study, model, GPU): FLOP, DRAM bytes, time in ns, as printed in the studies.
PUBLISHED = {
    ("002", "vgg11", V100): (221_705_941_507, 16_568_700_000, 163_316_785),
    ("002", "vgg13", V100): (390_284_311_131, 24_944_187_520, 182_278_578),
    ("002", "vgg19", V100): (602_786_338_165, 34_168_748_020, 223_432_104),
    ("002", "vgg11", A100): (11_771_359_163, 9_790_409_380, 141_306_033),
    ("002", "vgg13", A100): (12_628_475_297, 16_365_861_630, 153_713_319),
    ("002", "vgg19", A100): (13_162_802_109, 19_771_592_960, 176_424_599),
    ("004", "resnet18", V100): (23_851_649_316, 1_086_870_000, 202_907_231),
    ("004", "resnet50", V100): (71_858_381_540, 3_651_000_000, 211_992_785),
    ("004", "resnet18", A100): (2_843_954_468, 639_520_000, 223_984_715),
    ("004", "resnet50", A100): (4_014_655_508, 2_787_000_000, 229_978_666),
}

ELEMENTWISE = ("void at::native::vectorized_elementwise_kernel<4, at::native::{0}, at::detail::Array<char*, {1}>>"
               "(int, at::native::{0}, at::detail::Array<char*, {1}>)")
RELU = ELEMENTWISE.format("launch_clamp_scalar(at::TensorIteratorBase&)::{lambda(float)#1}", 2)
ADD = ELEMENTWISE.format("CUDAFunctor_add<float>", 3)
POOL_BACKWARD = "void at::native::max_pool_backward_nchw<float, float>(float const*, long const*, int, long, long)"
SGD = ("void at::native::multi_tensor_apply_kernel<at::native::TensorListMetadata<2>, "
       "at::native::BinaryOpListAlphaFunctor<float, 2, 2, 0>>(at::native::TensorListMetadata<2>)")
BN_FORWARD = "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1, true>(cudnnTensorStruct, float const*)"
BN_BACKWARD = "void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 512, true, 1>(float, float, float, float)"

# name, grid, block, launches, shares of FLOP, bytes and time. What is left of each sum goes to LEFT_OVER.
CONVOLUTIONS = {
    V100: [
        ("volta_scudnn_128x64_relu_interior_nn_v1", (1568, 2, 1), (128, 1, 1), 3, .24, .10, .20),
        ("volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1", (196, 4, 1), (256, 1, 1), 4, .20, .12, .14),
        ("volta_scudnn_128x64_stridedB_splitK_interior_nn_v1", (392, 2, 2), (128, 1, 1), 3, .27, .14, .22),
        ("volta_scudnn_128x128_stridedB_interior_nn_v1", (784, 2, 1), (256, 1, 1), 3, .20, .13, .16),
    ],
    # These run in TF32, so the CUDA cores' counters see only their epilogue.
    A100: [
        ("cutlass_tensorop_s1688fprop_optimized_tf32_128x64_16x5_nhwc_align4", (784, 2, 1), (128, 1, 1), 4,
         .004, .15, .22),
        ("cutlass_tensorop_s1688dgrad_optimized_tf32_128x128_16x4_nhwc_align4", (392, 2, 1), (256, 1, 1), 3,
         .004, .15, .20),
        ("sm80_xmma_wgrad_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x16_stage4_warpsize2x2"
         "x1_g1_tensor16x8x8_kernel_cudnn", (9, 4, 8), (128, 1, 1), 3, .002, .18, .22),
    ],
}
VGG_REST = {
    V100: [
        ("volta_sgemm_128x64_nn", (32, 196, 1), (128, 1, 1), 3, .03, .12, .06),
        ("volta_sgemm_64x32_sliced1x4_tn", (64, 1, 1), (128, 1, 1), 3, .02, .08, .05),
        (RELU, (25088, 1, 1), (128, 1, 1), 8, .01, .11, .05),
        (POOL_BACKWARD, (6272, 16, 1), (256, 1, 1), 5, .005, .08, .05),
        (SGD, (320, 1, 1), (512, 1, 1), 4, .01, .09, .04),
    ],
    A100: [
        ("ampere_sgemm_128x64_nn", (32, 196, 1), (128, 1, 1), 3, .62, .13, .10),
        ("ampere_sgemm_64x32_sliced1x4_tn", (64, 1, 1), (128, 1, 1), 3, .29, .08, .08),
        (RELU, (25088, 1, 1), (128, 1, 1), 8, .02, .10, .05),
        (POOL_BACKWARD, (6272, 16, 1), (256, 1, 1), 5, .01, .09, .05),
        (SGD, (320, 1, 1), (512, 1, 1), 4, .03, .09, .04),
    ],
}
RESNET_REST = {
    V100: [
        ("volta_sgemm_64x32_sliced1x4_tn", (32, 1, 1), (128, 1, 1), 1, .01, .06, .03),
        (BN_FORWARD, (64, 1, 1), (512, 1, 1), 6, .02, .13, .07),
        (BN_BACKWARD, (64, 1, 1), (512, 1, 1), 6, .03, .16, .08),
        (RELU, (3136, 1, 1), (128, 1, 1), 6, .005, .08, .04),
        (ADD, (3136, 1, 1), (128, 1, 1), 4, .005, .05, .03),
    ],
    A100: [
        ("ampere_sgemm_64x32_sliced1x4_tn", (32, 1, 1), (128, 1, 1), 1, .05, .06, .03),
        (BN_FORWARD, (64, 1, 1), (512, 1, 1), 6, .33, .14, .08),
        (BN_BACKWARD, (64, 1, 1), (512, 1, 1), 6, .48, .17, .09),
        (RELU, (3136, 1, 1), (128, 1, 1), 6, .06, .08, .05),
        (ADD, (3136, 1, 1), (128, 1, 1), 4, .04, .05, .03),
    ],
}
LEFT_OVER = ELEMENTWISE.format("FillFunctor<float>", 1)

COLUMNS = ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size",
           "Grid Size", "Device", "CC", "Section Name", "Metric Name", "Metric Unit", "Metric Value")
SASS = "smsp__sass_thread_inst_executed_op_f%s_pred_on.sum"


def scaled(value, units):
    """`value` in the largest unit that prints it exactly with two decimals, as ncu does but for the exactness."""
    for name, size in units:
        if value >= size and value * 100 % size == 0:
            return name, f"{value // size:,}.{value * 100 // size % 100:02}"
    return units[-1][0], f"{value:,}"


def size_text(value):
    return scaled(value, (("Gbyte", 10**9), ("Mbyte", 10**6), ("Kbyte", 10**3), ("byte", 1)))


def time_text(value):
    return scaled(value, (("msecond", 10**6), ("usecond", 10**3), ("nsecond", 1)))


def rounded(value, places):
    """Down to a number that ncu's unit shows exactly; the places of a unit are two."""
    return value - value % places


def launches_of(study, model, gpu):
    """(name, grid, block, FLOP, bytes read, bytes written, ns) of each launch; their sums are PUBLISHED."""
    left = list(PUBLISHED[study, model, gpu])
    flop, size, time = left
    rest = VGG_REST if model.startswith("vgg") else RESNET_REST
    result = []
    for name, grid, block, count, flop_share, size_share, time_share in CONVOLUTIONS[gpu] + rest[gpu]:
        # Counters of one launch are those of the next; its bytes and time would differ a little, but need not here.
        one_flop = int(flop * flop_share / count)
        one_size = size * size_share / count
        read, write = (rounded(int(one_size * part), 10**4) for part in (.625, .375))
        one_time = rounded(int(time * time_share / count), 10)
        result += [(name, grid, block, one_flop, read, write, one_time)] * count
        left = [left[0] - count * one_flop, left[1] - count * (read + write), left[2] - count * one_time]
    assert min(left) > 0, (study, model, gpu, left)
    # The rest is two launches, so that only the odd bytes and nanoseconds are printed in the base unit.
    odd_size, odd_time = left[1] % 1000 + 1000, left[2] % 1000 + 2000
    result.append((LEFT_OVER, (98, 1, 1), (128, 1, 1), left[0], left[1] - odd_size, 0, left[2] - odd_time))
    result.append((LEFT_OVER, (1, 1, 1), (128, 1, 1), 0, odd_size - 640, 640, odd_time))
    return result


def metrics_of(flop, read, write, time):
    adds = flop // 16 + flop % 2
    multiplies = flop // 20
    adds += (flop - adds - multiplies) % 2
    fused = (flop - adds - multiplies) // 2
    assert adds + multiplies + 2 * fused == flop
    return [("dram__bytes_read.sum", *size_text(read)), ("dram__bytes_write.sum", *size_text(write)),
            ("gpu__time_duration.sum", *time_text(time)), (SASS % "add", "inst", f"{adds:,}"),
            (SASS % "fma", "inst", f"{fused:,}"), (SASS % "mul", "inst", f"{multiplies:,}")]


def csv_line(fields):
    return ",".join('"%s"' % str(field).replace('"', '""') for field in fields)


def fixture(study, model, gpu):
    lines = ["==PROF== Connected to process 4711 (/usr/bin/python3.8)"]
    talks = study == "004"  # this study kept the program's output and ncu's in one file
    if talks:
        lines.append("=> creating model '%s'" % model)
    else:
        lines.append("==PROF== Disconnected from process 4711")
    lines.append(csv_line(COLUMNS))
    for index, (name, grid, block, *numbers) in enumerate(launches_of(study, model, gpu)):
        if talks and index % 7 == 3:
            lines.append("Epoch: [0][%d/10]\tTime  0.112 ( 0.140)\tLoss 6.9%d Kbyte, \"Acc@1\" 0.00" % (index, index))
        before = (index, 4711, "python3.8", "127.0.0.1", name, 1, 7, "(%d, %d, %d)" % block, "(%d, %d, %d)" % grid, 0,
                  "7.0" if gpu == V100 else "8.0", "Command line profiler metrics")
        lines += [csv_line((*before, *metric)) for metric in metrics_of(*numbers)]
        if talks and index % 11 == 5:
            lines.append('==PROF== Profiling "%s": 0%%....50%%....100%% - 3 passes' % name[:40])
    return "\n".join(lines) + "\n"


def name(study, model, gpu):
    return f"{study}/{model}_{gpu}.csv"


def write(folder):
    for row in PUBLISHED:
        path = pathlib.Path(folder) / name(*row)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(fixture(*row), encoding="utf-8")


if __name__ == "__main__":
    write(sys.argv[1]) if len(sys.argv) == 2 else sys.exit(__doc__)
