#include "cli/words/glossary.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace rfinject::cli {
namespace {

constexpr auto kGlossary = std::to_array<GlossaryEntry>({
    {"attainable", "of-attainable of-roof roof-share",
     "The speed that the roofs allow for this work: its FLOP over its least time."},
    {"bound", "bound-by", "What most of the time is held back by: launching, memory, compute, PCIe or NVLink."},
    {"busy", "gpu-busy idle",
     "The part of a step in which something runs on the GPU; two kernels at once count once."},
    {"bytes", "dram dram-bytes",
     "The traffic with the GPU's memory (DRAM); an estimate reads every operand once and writes every result once."},
    {"expected", "",
     "The time that a stopwatch would show, estimated by a model that is fitted to published times, with an interval "
     "that holds 80 % of them."},
    {"flop", "flops model-flop executed-flop",
     "Additions, multiplications, divisions and square roots; a multiply-add counts 2."},
    {"gain", "", "What a change would take off a step; gains of several changes may be the same time."},
    {"ideal", "", "The least time that the datasheet allows for an estimated kernel."},
    {"interval", "+-95",
     "How far a measured number may be off: 95 of 100 such intervals hold the run's mean "
     "(docs/method/INTERVALS.md)."},
    {"launch", "launches kernel", "One execution of a kernel, which is a function on the GPU."},
    {"layer", "layer-path", "A module of the model by its qualified name, as named_modules() has it."},
    {"least-time", "least",
     "The longer of FLOP over their peak and bytes over the memory's bandwidth, added up over kernels."},
    {"oi", "operational-intensity intensity flop/b", "Operational intensity: FLOP per byte of DRAM traffic."},
    {"phase", "",
     "What a launch was for: forward, backward, recompute, optimizer, data, communication, eval or other."},
    {"precision", "tensor tensor-core tf32",
     "The number type in which the arithmetic ran, and whether it ran on tensor cores."},
    {"ridge", "", "The intensity at which a roof turns from its slope (memory) to its flat part (arithmetic)."},
    {"roof", "roofs roofline",
     "The most that a GPU can do: the memory's bandwidth times the intensity, up to the peak of a precision."},
    {"slack", "to-win", "The time that something takes beyond its least time."},
    {"step", "iteration", "One optimizer step, or one call of the model where there is no optimizer."},
    {"tier", "attribution", "How much of the attribution works in this process, from A (all) to F (kernels only)."},
    {"trace", "rfx", "The file that a process writes (*.rfx)."},
    {"wait", "waits data-wait gpu-wait for-data for-gpu own",
     "The time in which the thread that ends the steps waits for its DataLoader or for the GPU (docs/use/JOBS.md)."},
});

// Lower case, with a dash for what stands between words.
std::string Plainly(std::string_view word) {
  return absl::StrReplaceAll(absl::AsciiStrToLower(std::string(word)), {{" ", "-"}, {"_", "-"}});
}

}  // namespace

std::span<const GlossaryEntry> Glossary() { return kGlossary; }

const GlossaryEntry* FindWord(std::string_view word) {
  const std::string wanted = " " + Plainly(word) + " ";
  const auto found = std::find_if(kGlossary.begin(), kGlossary.end(), [&](const GlossaryEntry& entry) {
    return (" " + std::string(entry.word) + " " + std::string(entry.also) + " ").find(wanted) != std::string::npos;
  });
  return wanted.size() == 2 || found == kGlossary.end() ? nullptr : &*found;
}

std::string GlossaryWords() {
  return absl::StrJoin(kGlossary, ", ",
                       [](std::string* out, const GlossaryEntry& entry) { out->append(entry.word); });
}

}  // namespace rfinject::cli
