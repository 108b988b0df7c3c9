// File: run_builder.h
//
// Makes what an import returns, whatever the file is: a Profile with one run, its launches within a bound, and what
// is said of both.
//
//   RunBuilder builder(path, "nsys");
//   if (LaunchStats* stats = builder.AddLaunch(key)) builder.TimesOf(stats).Add(ns);
//   if (!builder.fits()) return builder.Fail(kTooManyKeys);
//   builder.Warn("nothing says what a step is");
//   return builder.Finish();
#ifndef RFINJECT_CLI_IMPORT_RUN_BUILDER_H_
#define RFINJECT_CLI_IMPORT_RUN_BUILDER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cli/import/imported.h"
#include "cli/profile/time_order.h"
#include "proto/wire/vocabulary.h"

namespace rfinject::cli {

class RunBuilder {
 public:
  // `file` stands before each message. The run is an import of one process and one step, whose layers are not known.
  RunBuilder(std::string file, std::string_view collector) : file_(std::move(file)) {
    run.key.source = SourceKind::kImported;
    run.key.collector = collector;
    run.processes = 1;
    run.tier = kKernelsOnly;
    run.steps.steps = 1;
  }

  // Says that all of it is one model, "program" where that has no name.
  void SetModel(const std::string& name) {
    const std::string& model = run.key.models.emplace_back(name.empty() ? "program" : name);
    run.models[model] = ModelInfo{.class_name = model};
  }

  // The sums of launches of this key, which stay where they are; null where no further key fits.
  LaunchStats* StatsOf(const LaunchKey& key) {
    const auto [place, is_new] = run.launches.try_emplace(key);
    fits_ = fits_ && (!is_new || memory_.Fits(key));
    return fits_ ? &place->second : nullptr;
  }
  // The same of one launch more.
  LaunchStats* AddLaunch(const LaunchKey& key) {
    LaunchStats* const stats = StatsOf(key);
    if (stats == nullptr) return nullptr;
    ++stats->launches;
    ++result.kernels;
    return stats;
  }
  bool fits() const { return fits_; }

  // Adds a line to the report, and one on standard error where it is a warning.
  void Say(const trace::Diagnostic& said) {
    run.kept.diagnostic.Add(said);
    if (said.severity != trace::Severity::kInfo) Warn(said.text);
  }
  // Adds a line on standard error alone.
  void Warn(std::string_view text) { result.warnings.push_back(absl::StrCat(file_, ": ", std::string(text))); }
  absl::Status Fail(std::string_view why) const {
    return absl::InvalidArgumentError(absl::StrCat(file_, ": ", std::string(why)));
  }

  // The GPU's times of a key's launches.
  struct Times {
    Stat* sum = nullptr;
    std::vector<StepSum>* order = nullptr;
    void Add(uint64_t ns) const {
      AddInOrder(sum->n, ns, order);
      sum->Add(ns);
    }
  };
  static Times TimesOf(LaunchStats* stats) {
    return {&stats->metrics[std::string(kMetricTime)], &stats->step_sums[std::string(kMetricTimeOrder)]};
  }

  Imported Finish() {
    size_t pieces = 0;
    for (auto& [key, stats] : run.launches) {
      const auto order = stats.step_sums.find(std::string(kMetricTimeOrder));
      if (order != stats.step_sums.end()) pieces = std::max(pieces, order->second.size());
    }
    std::map<uint64_t, uint64_t> processes;
    for (size_t i = 0; i < pieces; ++i) processes.emplace_hint(processes.end(), i, 1);
    if (pieces > 0) {
      run.sampled_steps[std::string(kMetricTimeOrder)] = std::move(processes);
      DefineMetric(kMetricTimeOrder, "ns", &result.profile);
    }
    result.profile.runs[run.key] = std::move(run);
    return std::move(result);
  }

  Run run;
  Imported result;

 private:
  static constexpr int kKernelsOnly = 6;  // rfinject.v1.Tier: F
  std::string file_;
  KeyMemory memory_;
  bool fits_ = true;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_RUN_BUILDER_H_
