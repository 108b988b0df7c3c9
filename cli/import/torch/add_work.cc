#include "cli/import/torch/add_work.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/import/imported.h"
#include "gpus/kernel_names.h"
#include "operators/precision.h"

namespace rfinject::cli {

void AddWork(const OperatorWork& work, bool main, const std::string& kernel, const Gpu* gpu, LaunchStats* stats) {
  const auto add = [&](std::string_view metric, uint64_t value) {
    stats->metrics[std::string(metric)].Add(main ? value : 0);
  };
  add(kMetricModelFlop, work.flop.model);
  add(kMetricCompulsoryBytes, work.bytes);
  add(kMetricDramBytes, work.bytes);
  std::map<Precision, uint64_t> executed;
  const auto unit = [&](estimate::Unit of) {
    return gpu != nullptr                ? estimate::UnitFor(of, work.type, *gpu, {.convolution_tf32 = false})
           : work.type == DType::kDouble ? Precision::kFp64
                                         : Precision::kFp32;
  };
  if (work.flop.matrix != 0) {
    executed[PrecisionOfKernel(kernel).value_or(unit(work.unit))] += work.flop.matrix;
  }
  if (work.flop.vector != 0) executed[unit(estimate::Unit::kVector)] += work.flop.vector;
  for (const auto& [precision, flop] : executed) add(kMetricFlop[static_cast<size_t>(precision)], flop);
  if (executed.empty()) add(kMetricFlop[static_cast<size_t>(Precision::kFp32)], 0);
}

void DefineWork(Profile* profile) {
  DefineMetric(kMetricTime, "ns", profile);
  DefineMetric(kMetricModelFlop, "FLOP", profile);
  DefineMetric(kMetricCompulsoryBytes, "byte", profile);
  DefineMetric(kMetricDramBytes, "byte", profile);
  for (const std::string_view name : kMetricFlop) DefineMetric(name, "FLOP", profile);
}

std::string LackingWork::Text(uint64_t total_ns) const {
  std::vector<std::pair<uint64_t, std::string>> reasons;
  uint64_t lacking = 0;
  for (const auto& [what, ns] : ns_) {
    lacking += ns;
    reasons.emplace_back(ns, absl::StrCat(what.first, ": ", std::string(what.second)));
  }
  if (lacking == 0) return {};
  const auto share = [total_ns](uint64_t ns) {
    const double percent = total_ns == 0 ? 0 : 100 * static_cast<double>(ns) / static_cast<double>(total_ns);
    return percent >= 10 ? absl::StrFormat("%.0f %%", percent) : absl::StrFormat("%.2g %%", percent);
  };
  std::sort(reasons.rbegin(), reasons.rend());
  constexpr size_t kNamed = 3;
  std::vector<std::string> named;
  for (size_t i = 0; i < std::min(kNamed, reasons.size()); ++i) {
    named.push_back(absl::StrCat(reasons[i].second, " (", share(reasons[i].first), ")"));
  }
  return absl::StrCat("no FLOP and no bytes for ", share(lacking), " of the GPU's time. ", absl::StrJoin(named, "; "),
                      reasons.size() > kNamed ? "; …" : "");
}

}  // namespace rfinject::cli
