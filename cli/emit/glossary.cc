#include "cli/emit/glossary.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace rfinject::cli {
namespace {

constexpr auto kGlossary = std::to_array<GlossaryEntry>({
    {"attainable", "of-attainable of-roof roof-share",
     "The speed that the roofs allow for this work: its FLOP over its least time. \"56 % of attainable\" says that "
     "the GPU "
     "could do the same in 56 % of the time, as far as the datasheet goes."},
    {"bound", "bound-by",
     "What keeps most of the time from being shorter: launching (too little work a launch), memory (its bytes take "
     "longer "
     "than its FLOP), compute (its FLOP take longer than its bytes), PCIe (copies to and from the host, and "
     "collectives "
     "of GPUs without NVLink), NVLink (collectives)."},
    {"busy", "gpu-busy idle",
     "For how long of a step something runs on the GPU: a kernel, a copy, a memory set. Two at once count once. The "
     "rest of "
     "the clock it is idle."},
    {"bytes", "dram dram-bytes",
     "What was read from and written to the GPU's memory (DRAM). Of an estimate every operand is read once and every "
     "result written once."},
    {"expected", "",
     "Of an estimate: the time that a stopwatch would show, from a model that is fitted to times that others "
     "measured, with "
     "an interval that holds 80 % of them."},
    {"flop", "flops model-flop executed-flop",
     "Additions, multiplications, divisions and square roots; 2 for a multiply-add. Model FLOP are what the layer's "
     "mathematics asks for, executed FLOP what the hardware did. FLOP/s are FLOP a second."},
    {"gain", "",
     "What a change would take off a step's GPU time. Gains of several changes do not add up: they may win the "
     "same time."},
    {"ideal", "",
     "Of an estimate: the least time that the datasheet allows, the roofline's. No kernel reaches it always."},
    {"interval", "+-95",
     "How far a measured number may be off: 95 of 100 such runs hold it. docs/method/INTERVALS.md has how it is "
     "made, and "
     "why "
     "there sometimes is none."},
    {"launch", "launches kernel",
     "One execution of a kernel, which is a function on the GPU. Each launch takes some microseconds whatever it "
     "does."},
    {"layer", "layer-path",
     "A module of the model by its qualified name, as named_modules() has it. \"(optimizer, no layer)\" is work that "
     "no "
     "module did."},
    {"least-time", "least",
     "The longer of FLOP over the peak of their precision and bytes over the memory's bandwidth, added up over "
     "kernels."},
    {"oi", "operational-intensity intensity flop/b",
     "Operational intensity, FLOP per byte of DRAM traffic. Left of the ridge the memory bounds a kernel, right of "
     "it the "
     "arithmetic."},
    {"phase", "",
     "What of a step it is: forward, backward, recompute (a checkpointed forward that runs again), optimizer, data "
     "(copies "
     "to and from the GPU), communication (collectives), eval (validation), other."},
    {"precision", "tensor tensor-core tf32",
     "The type that the arithmetic ran in. \"TF32 tensor\" and the like ran on tensor cores, which are 8 to 16 times "
     "as fast "
     "as FP32 on CUDA cores."},
    {"ridge", "", "The intensity at which a roof turns from its slope (memory) to its flat part (arithmetic)."},
    {"roof", "roofs roofline",
     "The most that a GPU can do: a slope, the memory's bandwidth times the intensity, and a flat line, the peak of "
     "a "
     "precision. `rfinject gpus` has the numbers and where they are from."},
    {"slack", "to-win",
     "The time that something takes beyond its least time: the most that anything could win there."},
    {"step", "iteration",
     "What the training loop does over and over, closed by the optimizer's step; without an optimizer a call of the "
     "model. "
     "Numbers of tables are a step's."},
    {"tier", "attribution",
     "How well work is attributed to layers in this process, A (all of it) to F (kernels only). Below A a report "
     "says what "
     "was not available."},
    {"trace", "rfx",
     "The file that a process writes: *.rfx. `rfinject report` reads it, `rfinject dump` shows it as text."},
    {"wait", "waits data-wait gpu-wait for-data for-gpu own",
     "What the thread that ends the steps waits for: a batch of its DataLoader, or the GPU, in calls that return "
     "when that has "
     "done its work (.item(), .cpu(), synchronize). The rest of the clock is the host's own: Python, launching. "
     "docs/use/JOBS.md has more."},
});

// Lower case, with a dash for what stands between words.
std::string Plainly(std::string_view word) {
  std::string plain;
  for (const char c : word) {
    plain += c == ' ' || c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return plain;
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
  std::string words;
  for (const GlossaryEntry& entry : kGlossary) words += (words.empty() ? "" : ", ") + std::string(entry.word);
  return words;
}

}  // namespace rfinject::cli
