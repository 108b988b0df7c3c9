#include "cli/import/nvtx_ranges.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <tuple>
#include <utility>

namespace rfinject::cli {
namespace {

// The words of a name, in small letters: "ProfilerStep#4" is profiler, step.
std::vector<std::string> WordsOf(std::string_view name) {
  std::vector<std::string> words(1);
  bool small = false;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (!std::isalpha(byte) || (std::isupper(byte) && small)) words.emplace_back();
    small = std::islower(byte) != 0;
    if (std::isalpha(byte)) words.back() += static_cast<char>(std::tolower(byte));
  }
  std::erase(words, "");
  return words;
}

bool Has(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

namespace {

constexpr std::array<std::pair<std::string_view, Phase>, 8> kPhaseWords = {{{"forward", Phase::kForward},
                                                                            {"backward", Phase::kBackward},
                                                                            {"autograd", Phase::kBackward},
                                                                            {"optimizer", Phase::kOptimizer},
                                                                            {"optim", Phase::kOptimizer},
                                                                            {"dataloader", Phase::kData},
                                                                            {"validation", Phase::kEval},
                                                                            {"eval", Phase::kEval}}};
// Words that stand beside them in a word of code that marks a phase: "forward_pass", "optimizer_step", "run_eval".
constexpr std::string_view kBeside[] = {"pass",  "step",  "loop", "epoch", "phase", "batch", "iter", "iteration",
                                        "model", "train", "run",  "do",    "time",  "loss",  "grad", "update"};

bool IsBeside(const std::string& word) {
  return std::ranges::find(kBeside, std::string_view(word)) != std::end(kBeside);
}

// A node of autograd, "AddmmBackward0".
bool IsNode(std::string_view name) {
  while (!name.empty() && std::isdigit(static_cast<unsigned char>(name.back())) != 0) name.remove_suffix(1);
  return name.ends_with("Backward");
}

// Whether a word of code has a phase's word in it without marking a phase: it is something's own name.
bool HidesPhase(std::string_view name) {
  const std::vector<std::string> words = WordsOf(name);
  return name.find_first_of(" .#/(") == std::string_view::npos &&
         std::ranges::any_of(kPhaseWords, [&words](const auto& one) { return Has(words, one.first); });
}

}  // namespace

Phase PhaseOfRange(std::string_view name) {
  while (!name.empty()) {
    // A word of code, "optimizer_step" of "train/optimizer_step 3".
    const size_t end = std::min(name.find_first_of(" .#/()[]:,-+|=<>"), name.size());
    const std::vector<std::string> words = WordsOf(name.substr(0, end));
    name.remove_prefix(std::min(end + 1, name.size()));
    for (const auto& [word, phase] : kPhaseWords) {
      if (!Has(words, word)) continue;
      const bool alone =
          std::ranges::all_of(words, [word = word](const std::string& one) { return one == word || IsBeside(one); });
      if (alone) return phase;
    }
  }
  return Phase::kOther;
}

std::string_view NameOfRange(std::string_view text) {
  return text.substr(0, std::min({text.find(", seq = "), text.find(", op_id = "), text.find(", sizes = ")}));
}

bool IsOperatorRange(std::string_view text) {
  const std::string_view name = NameOfRange(text);
  return name.size() != text.size() || name.find("::") != std::string_view::npos || name.starts_with("nccl") ||
         IsNode(name);
}

Phase PhaseOfOperator(std::string_view name) {
  if (name.starts_with("autograd::") || IsNode(name)) return Phase::kBackward;
  if (name.ends_with("AccumulateGrad")) return Phase::kBackward;  // the node at which a gradient ends
  if (const size_t space = name.rfind("::", name.find('(')); space != std::string_view::npos) {
    name.remove_prefix(space + 2);
  }
  const std::vector<std::string> words = WordsOf(name.substr(0, name.find_first_of(" (")));
  if (Has(words, "backward") || Has(words, "bwd")) return Phase::kBackward;
  return Has(words, "forward") || Has(words, "fwd") ? Phase::kForward : Phase::kOther;
}

bool IsLoaderName(std::string_view name) { return name.starts_with("enumerate(DataLoader)#"); }

bool IsStepName(std::string_view name) {
  if (IsLoaderName(name) || NameOfRange(name).size() != name.size())
    return false;  // "..._SingleProcessDataLoaderIter.__next__"
  const std::vector<std::string> words = WordsOf(name);
  if (name.find("::") != std::string_view::npos || Has(words, "norm")) return false;
  if (Has(words, "optimizer") || Has(words, "optim") || Has(words, "scheduler")) return false;
  return Has(words, "step") || Has(words, "iteration") || Has(words, "iter") || Has(words, "batch");
}

NvtxPlace NvtxStack::At(int64_t thread, int64_t time) {
  for (; !ended_; has_ahead_ = false) {
    if (!has_ahead_) {
      has_ahead_ = next_(&ahead_);
      ended_ = !has_ahead_;
      if (ended_) break;
    }
    if (std::tie(ahead_.thread, ahead_.start) > std::tie(thread, time)) break;
    std::erase_if(
        open_, [this](const NvtxRange& range) { return range.thread != ahead_.thread || range.end <= ahead_.start; });
    if (open_.size() < kMostNested) open_.push_back(ahead_);
  }
  std::erase_if(open_, [&](const NvtxRange& range) { return range.thread != thread || range.end <= time; });
  NvtxPlace place;
  for (const NvtxRange& range : open_) {
    if (!place.in_step && IsStepName(range.name)) {
      place.in_step = true;
      place.path.clear();  // a range around a step ("epoch 2") is no part of the network
      continue;
    }
    const std::string_view name = NameOfRange(range.name);
    const Phase phase = PhaseOfRange(name);
    if (IsOperatorRange(range.name) || (phase == Phase::kOther && HidesPhase(name))) {
      place.op = name;
      // What autograd or the program says of the phase counts before what an operator's name does.
      if (place.phase == Phase::kOther) place.phase = PhaseOfOperator(name);
      continue;
    }
    if (phase != Phase::kOther) {
      place.phase = phase;
      continue;
    }
    if (!place.path.empty()) place.path += '.';
    place.path += name;
  }
  return place;
}

}  // namespace rfinject::cli
