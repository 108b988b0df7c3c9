#include "cli/words/alarm_texts.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace rfinject::cli {
namespace {

constexpr auto kAlarms = std::to_array<AlarmExplanation>({
    {"R001", "A kernel is above its effective roof",
     "The least time that the roofs allow for a kernel's FLOP and DRAM bytes, each FLOP held against the peak of the "
     "precision and path that it ran in, is more than 3 % longer than the time that it took.",
     "FLOP held against the wrong precision's roof; time and counters of different work; a clock above the data "
     "sheet's; another GPU named than it ran on.",
     "Kernels within 3 %: time and bytes come from different launches of a key, and clocks run some percent over "
     "boost.",
     "Look at the kernel with --by kernel; compare --roofs clock with the data sheet's; see whether R003 or R002 "
     "name "
     "the part that is wrong."},
    {"R002", "More traffic than the memory can move",
     "DRAM bytes over time are more than 3 % above the memory's bandwidth.",
     "Bytes of one run over times of another; bytes of several passes added up; wrong GPU named; a unit lost in a "
     "conversion.",
     "", "Measure time and bytes in one run; check the units of an import."},
    {"R003", "A unit above its peak, or one that the GPU lacks",
     "FLOP counted in a precision over time are more than 3 % above its peak, over all paths or over one of them "
     "(mma, wgmma); or FLOP were counted in a precision for which the GPU has no unit.",
     "FLOP counted twice; time of another run or clock; 2:4 sparsity; a metric of another chip; wrong GPU named.", "",
     "Check the metric's name against the chip (gpus/chips.csv, gpus/chip_counters.csv), and the GPU that the file names."},
    {"R004", "A tensor-core kernel without tensor FLOP",
     "A kernel whose name says tensor cores (hmma, s1688, tensorop and the like) was counted, and no tensor FLOP "
     "were.",
     "Only the counters of CUDA cores (smsp__sass_...) were asked for; the counter of another source type is missing "
     "(TF32, FP16 and BF16 have one each).",
     "Kernels of estimates, which have no such names; kernels that were not counted at all.",
     "Add sm__ops_path_tensor_src_... to the metrics; docs/method/CASE_STUDIES.md shows what a roofline looks like "
     "without."},
    {"R005", "Backward FLOP that the layers do not explain",
     "Of an estimate, layer by layer, the products of matrices and convolutions: the backward of a layer may need up "
     "to twice the model FLOP of its forward (2.6 times where it is attention, which is computed again), and operators "
     "of the forward do not run in it. What goes beyond, and what is in no layer although layers lack it, may be one "
     "in twenty of the whole backward's FLOP. Where model FLOP come from --theory, the whole backward is held against "
     "the whole forward: 1.8 to 2.05.",
     "Forwards that were not attributed; recomputation counted as backward; products counted twice; backward without "
     "a layer.",
     "A first layer, which needs no gradient of its input; frozen layers; a teacher; validation, which is a run of "
     "its own; a generator under no_grad; recomputation, which has a phase of its own; a gradient penalty, whose "
     "second derivatives are known by their nodes; functions and losses outside of modules, with their backward; "
     "several backwards of one forward (retain_graph), in which other derivatives ran several times, too.",
     "report --by layer shows the FLOP of each phase; backward without a layer: --by stack, and the attribution tier "
     "in the head of the report."},
    {"R006", "Rows do not add up to the total",
     "Any quantity summed over the rows differs from that of the whole run by more than rounding.",
     "A mistake in rfinject.", "", "Please report it, with the trace."},
    {"R007", "FLOP that differ between launches of one key",
     "A FLOP counter is not the same in all launches with one kernel, grid, layer, phase and operator.",
     "The key is too coarse: shapes or algorithms differ within it; data-dependent work.",
     "Bytes and times, which may differ; counters that were shared between the launches of a layer.",
     "Means of such a key are means of different work: look at its operator's shapes."},
    {"R008", "More kernel time than wall time",
     "The kernels of a step take more than 3 % longer than the step, for each device of the run.",
     "Kernels that overlap on several streams; times taken while profiling slowed them; steps miscounted.",
     "Steps in which counters ran, whose wall time does not count.",
     "Compare with --step-by optimizer; where streams overlap, shares of GPU time are not shares of the step."},
    {"R009", "Executed FLOP far from the model's",
     "Executed over model FLOP is below 0.24 (Winograd's F(4x4, 3x3) does a quarter; nothing known does less) or "
     "above "
     "2.",
     "Low: FLOP on a path that was not counted (tensor cores), rows lost in a conversion, fewer images than said. "
     "High: recomputation, more than one step or batch in the counts, padding of tiny layers.",
     "", "report --theory with --columns theory shows the ratio row by row."},
    {"R010", "Clocks that drifted between samples",
     "The fastest mean SM clock of a key's samples is more than 5 % over the slowest.",
     "Power or thermal limits; clocks locked in one run and not in the other.", "",
     "Lock the clocks, or read times with the spread that they have."},
    {"R011", "Sparse tensor FLOP", "A counter of 2:4 sparse tensor operations is not 0.",
     "The program uses structured sparsity.", "", "Dense peaks do not bound such kernels: read their shares so."},
    {"R012", "No bytes, or impossible counts",
     "A kernel of more than a millisecond a launch moved no DRAM bytes, or a value is above 2^62.",
     "DRAM counters that did not run; values lost in a conversion of units; a counter that went backwards.",
     "Short kernels that live in the L2 cache.", "Check which counter groups ran; R012 names the kernel."},
});

}  // namespace

std::span<const AlarmExplanation> AlarmExplanations() { return kAlarms; }

std::string AlarmRange() { return std::string(kAlarms.front().id) + " to " + std::string(kAlarms.back().id); }

bool ParseAlarmIds(std::string_view text, std::vector<std::string>* ids) {
  ids->clear();
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    std::string id(text.substr(0, comma));
    for (char& c : id) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    const bool known = std::any_of(kAlarms.begin(), kAlarms.end(), [&](const auto& alarm) { return alarm.id == id; });
    if (!known) return false;
    ids->push_back(std::move(id));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return true;
}

}  // namespace rfinject::cli
