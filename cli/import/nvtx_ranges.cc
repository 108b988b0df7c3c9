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

Phase PhaseOfRange(std::string_view name) {
  const std::vector<std::string> words = WordsOf(name);
  constexpr std::array<std::pair<std::string_view, Phase>, 8> kWords = {{{"forward", Phase::kForward},
                                                                         {"backward", Phase::kBackward},
                                                                         {"autograd", Phase::kBackward},
                                                                         {"optimizer", Phase::kOptimizer},
                                                                         {"optim", Phase::kOptimizer},
                                                                         {"dataloader", Phase::kData},
                                                                         {"validation", Phase::kEval},
                                                                         {"eval", Phase::kEval}}};
  for (const auto& [word, phase] : kWords) {
    if (Has(words, word)) return phase;
  }
  return Phase::kOther;
}

bool IsLoaderName(std::string_view name) { return name.starts_with("enumerate(DataLoader)#"); }

bool IsStepName(std::string_view name) {
  if (IsLoaderName(name)) return false;  // "..._SingleProcessDataLoaderIter.__next__"
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
    const std::string_view name = std::string_view(range.name).substr(0, range.name.find(','));
    if (const Phase phase = PhaseOfRange(name); phase != Phase::kOther) {
      place.phase = phase;
      continue;
    }
    if (name.find("::") != std::string_view::npos) {
      place.op = name;
      continue;
    }
    if (!place.path.empty()) place.path += '.';
    place.path += name;
  }
  return place;
}

}  // namespace rfinject::cli
