#include "cli/report/facts/process.h"

#include <algorithm>
#include <array>
#include <set>

#include "absl/time/time.h"

namespace rfinject::cli {
namespace {

template <uint64_t ModelInfo::*kAmount>
Cell SumOfModels(const Processes& process) {
  double sum = 0;
  for (const ModelInfo& model : process.models) sum += static_cast<double>(model.*kAmount);
  return KnownCell(sum);
}

constexpr auto kProcessFacts = std::to_array<FactOf<Processes>>({
    {CountColumn("processes", "Processes that wrote a trace.", "Processes"),
     [](const Processes& process) { return Cell{process.count}; }},
    {CountColumn("unfinished", "Processes whose trace has no end."),
     [](const Processes& process) { return Cell{process.unfinished}; }},
    {TextColumn("started", "When the run began, local time."),
     [](const Processes& process) {
       const ProcessInfo* const first = FirstProcess(process.list);
       return TextCell(first != nullptr ? StartText(first->start_unix_ns) : "");
     }},
    {TextColumn("command", "The command of the run."),
     [](const Processes& process) {
       const ProcessInfo* const first = FirstProcess(process.list);
       return TextCell(first != nullptr ? CommandText(first->argv) : "");
     }},
    {UnitColumn("parameters", "", "Parameters of the model."), SumOfModels<&ModelInfo::parameters>},
    {UnitColumn("parameter_bytes", "B", "Bytes of these parameters."), SumOfModels<&ModelInfo::parameter_bytes>},
    {TextColumn("tier", "How launches got their layers.", "Attribution"),
     [](const Processes& process) { return TextCell(TierText(process.tier)); }},
});

}  // namespace

std::span<const FactOf<Processes>> ProcessFacts() { return kProcessFacts; }

Processes ProcessesOf(const Run& run) {
  Processes process{.list = run.process_list,
                    .count = run.processes,
                    .unfinished = run.unfinished,
                    .tier = run.tier,
                    .different_commands = DifferentCommands(run.process_list)};
  for (const auto& [name, model] : run.models) process.models.push_back(model);
  return process;
}

std::string StartText(int64_t start_unix_ns) {
  if (start_unix_ns <= 0) return {};
  return absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::FromUnixNanos(start_unix_ns), absl::LocalTimeZone());
}

std::string CommandText(std::span<const std::string> argv) {
  std::string text;
  for (const std::string& word : argv) {
    text += text.empty() ? "" : " ";
    const bool plain = !word.empty() && word.find_first_of(" \t\n\"'$\\;&|<>()*?") == std::string::npos;
    if (plain) {
      text += word;
      continue;
    }
    text += '\'';
    for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
    text += '\'';
  }
  return text;
}

const ProcessInfo* FirstProcess(std::span<const ProcessInfo> processes) {
  const auto first = std::ranges::min_element(processes, {}, &ProcessInfo::start_unix_ns);
  return first != processes.end() ? &*first : nullptr;
}

std::vector<std::string> DifferentCommands(std::span<const ProcessInfo> processes) {
  std::set<std::string> commands;
  for (const ProcessInfo& process : processes) {
    std::vector<std::string> words;
    bool worker = process.argv.empty();
    for (size_t i = 0; i < process.argv.size(); ++i) {
      const std::string& word = process.argv[i];
      worker = worker || word.starts_with("from multiprocessing.") || word == "--multiprocessing-fork";
      const std::string_view name = std::string_view(word).substr(0, word.find('='));
      if (name != "--local_rank" && name != "--local-rank") {
        words.push_back(word);
      } else if (name == word) {
        ++i;  // its value
      }
    }
    if (!worker) commands.insert(CommandText(words));
  }
  if (commands.size() < 2) return {};
  return {commands.begin(), commands.end()};
}

TierWords TierOf(int tier) {
  static constexpr auto kTiers = std::to_array<TierWords>({
      {"A", "layers from the calls of Module.__call__, backward from autograd's current node"},
      {"B", "layers from the calls of Module.__call__, backward from RecordFunction scopes"},
      {"C", "layers from the call slots of the module classes"},
      {"D", "operator and autograd node names only, no layers"},
      {"E",
       "libtorch without Python, layers from the functions on the native stack; validation is what runs without "
       "gradients"},
      {"F", "no torch found, kernels only"},
  });
  if (tier < 1 || tier > static_cast<int>(kTiers.size())) return {"unknown", ""};
  return kTiers[static_cast<size_t>(tier - 1)];
}

std::string TierText(int tier) {
  const TierWords words = TierOf(tier);
  return std::string(words.letter) + (words.meaning.empty() ? "" : ": " + std::string(words.meaning));
}

}  // namespace rfinject::cli
