#include "cli/report/invariants.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <map>
#include <string>

#include "cli/report/quantities.h"
#include "cli/report/units.h"
#include "gpus/chips.h"

namespace rfinject::cli {
namespace {

[[gnu::format(printf, 1, 2)]] std::string Format(const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

std::string Where(const LaunchKey& key) {
  std::string where = key.layer.model;
  if (!key.layer.path.empty()) where += (where.empty() ? "" : " ") + key.layer.path;
  where += (where.empty() ? "" : ", ") + std::string(kPhaseNames[static_cast<size_t>(key.phase)]);
  return where + ", " + (key.kernel.size() > 80 ? key.kernel.substr(0, 77) + "..." : key.kernel);
}

// Gathers alarms of one kind, each with the time behind it, so that a million kernels give a readable list.
class Alarms {
 public:
  void Add(const char* id, double time_ns, std::string text, std::string causes, std::string where = {}) {
    Kind& kind = kinds_[id];
    ++kind.count;
    kind.kept.push_back({time_ns, Alarm{id, std::move(text), std::move(causes), std::move(where)}});
    std::stable_sort(kind.kept.begin(), kind.kept.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    if (kind.kept.size() > kMaxAlarmsOfOneKind) kind.kept.pop_back();
  }

  std::vector<Alarm> Take() {
    std::vector<Alarm> alarms;
    for (auto& [id, kind] : kinds_) {
      for (auto& [time_ns, alarm] : kind.kept) alarms.push_back(std::move(alarm));
      if (kind.count > kind.kept.size()) {
        alarms.push_back({.id = id,
                          .text = Format("and %zu more of this kind, with less time", kind.count - kind.kept.size()),
                          .causes = {},
                          .where = {}});
      }
    }
    return alarms;
  }

 private:
  struct Kind {
    size_t count = 0;
    std::vector<std::pair<double, Alarm>> kept;
  };
  std::map<std::string, Kind> kinds_;
};

// Names under which libraries ship kernels that run on tensor cores: cuDNN, cuBLAS and CUTLASS put the instruction,
// the tile or the type into the name.
bool NamesTensorCores(std::string_view kernel) {
  for (std::string_view part :
       {"tensorop", "s884", "s1688", "s16816", "h884", "h1688", "h16816", "i8816", "s64x", "hmma", "gmma", "tf32",
        "bf16f32", "_bf16_", "xmma", "wgmma", "mma_sync", "fp8_e4m3"}) {
    if (kernel.find(part) != std::string_view::npos) return true;
  }
  return false;
}
// xmma is also the name of cuDNN's and cuBLAS's kernel family, whose FP32 members run on the CUDA cores.
bool NamesCudaCores(std::string_view kernel) {
  return kernel.find("simt") != std::string_view::npos || kernel.find("ffma") != std::string_view::npos ||
         kernel.find("sgemm") != std::string_view::npos || kernel.find("scudnn") != std::string_view::npos ||
         kernel.find("f32f32_f32f32") != std::string_view::npos;
}

void CheckKernel(const Machine& machine, std::string_view chip, const LaunchKey& key, const LaunchStats& stats,
                 const KeyQuantities& quantities, bool measured, Alarms& alarms) {
  const Sums& sums = quantities.sums;
  const double seconds = sums.time_ns * 1e-9;
  const std::string where = Where(key);
  // Shares of a layer's sum against one kernel's time say nothing.
  if (!machine.name.empty() && seconds > 0 && !quantities.shared) {
    Work work{.flop = sums.flop, .dram_bytes = sums.dram_bytes, .legacy_flop = sums.legacy_flop};
    for (size_t i = 0; i < kPrecisionCount; ++i) {
      if (work.flop[i] <= 0) continue;
      const double rate = work.flop[i] / seconds;
      if (machine.peak[i] <= 0) {
        alarms.Add("R003", sums.time_ns,
                   Format("%.3g FLOP counted as %s, which %s does not have", work.flop[i],
                          std::string(kPrecisionTitles[i]).c_str(), machine.name.c_str()),
                   "another GPU than the file says; a metric of another chip", where);
        work.flop[i] = 0;
      } else if (rate > machine.peak[i] * kRoofTolerance) {
        alarms.Add("R003", sums.time_ns,
                   Format("%s at %s, %.0f %% of its peak %s", std::string(kPrecisionTitles[i]).c_str(),
                          WithPrefix(rate, "FLOP/s").c_str(), 100 * rate / machine.peak[i],
                          WithPrefix(machine.peak[i], "FLOP/s").c_str()),
                   "time of another run or clock; FLOP counted twice; 2:4 sparsity; wrong GPU named", where);
      } else if (const double legacy = work.legacy_flop[i] / seconds, peak = machine.peak[i] * machine.legacy_share;
                 legacy > peak * kRoofTolerance) {
        alarms.Add(
            "R003", sums.time_ns,
            Format("%s over the %s path at %s, %.0f %% of that path's peak %s",
                   std::string(kPrecisionTitles[i]).c_str(),
                   std::string(TensorPathNames(machine.chip).legacy).c_str(), WithPrefix(legacy, "FLOP/s").c_str(),
                   100 * legacy / peak, WithPrefix(peak, "FLOP/s").c_str()),
            "time of another run or clock; FLOP counted twice; wrong GPU named", where);
      }
    }
    const double bandwidth = sums.dram_bytes / seconds;
    if (machine.dram_bytes_per_s > 0 && bandwidth > machine.dram_bytes_per_s * kRoofTolerance) {
      alarms.Add("R002", sums.time_ns,
                 Format("%s to and from DRAM, %.0f %% of the %s that %s has", WithPrefix(bandwidth, "B/s").c_str(),
                        100 * bandwidth / machine.dram_bytes_per_s,
                        WithPrefix(machine.dram_bytes_per_s, "B/s").c_str(), machine.name.c_str()),
                 "bytes of one run over times of another; bytes of several passes added up; wrong GPU named", where);
    }
    const double least_ns = LeastTime(machine, work).total_s() * 1e9;
    if (least_ns > sums.time_ns * kRoofTolerance) {
      alarms.Add("R001", sums.time_ns,
                 Format("%.3g times faster than its roof allows (%s FLOP and %s took %s; at least %s are needed)",
                        least_ns / sums.time_ns, WithPrefix(TotalFlop(work), "").c_str(),
                        WithPrefix(sums.dram_bytes, "B").c_str(), WithPrefix(seconds, "s").c_str(),
                        WithPrefix(least_ns * 1e-9, "s").c_str()),
                 "FLOP held against the wrong precision's roof; time without the work; clocks above the datasheet's",
                 where);
    }
  }
  if (measured && NamesTensorCores(key.kernel) && !NamesCudaCores(key.kernel)) {
    double tensor_flop = 0;
    for (size_t i = static_cast<size_t>(Precision::kTf32Tensor); i < kPrecisionCount; ++i)
      tensor_flop += sums.flop[i];
    const bool counted_something = quantities.has_scalar_flop || quantities.has_tensor_flop;
    if (counted_something && tensor_flop <= 0) {
      alarms.Add("R004", sums.time_ns,
                 quantities.has_tensor_flop ? "named as a tensor-core kernel, but its tensor counters are 0"
                                            : "named as a tensor-core kernel, but no tensor counter was collected",
                 quantities.has_tensor_flop
                     ? "the counter of another source type is missing (TF32, FP16, BF16 have one each)"
                     : "only CUDA-core counters (smsp__sass_...) were asked for; add sm__ops_path_tensor_src_...",
                 where);
    }
  }
  if (measured) {
    for (const FlopTerm& term : FlopFormula(chip)) {
      const auto found = stats.metrics.find(std::string(term.metric));
      if (found == stats.metrics.end() || found->second.n == 0) continue;
      const Stat& stat = found->second;
      if (term.sparse && stat.sum > 0) {
        alarms.Add("R011", sums.time_ns, Format("%s is not 0", std::string(term.metric).c_str()),
                   "2:4 sparse tensor work: dense peaks do not bound it", where);
      }
      if (!term.sparse && stat.min != stat.max && stat.shared_sums == 0) {
        alarms.Add("R007", sums.time_ns,
                   Format("%s is between %llu and %llu for launches of one key", std::string(term.metric).c_str(),
                          static_cast<unsigned long long>(stat.min), static_cast<unsigned long long>(stat.max)),
                   "the key is too coarse: shapes or algorithms differ within it; data-dependent work", where);
      }
    }
    const auto clock = stats.metrics.find(std::string(kSmClockMetric));
    if (clock != stats.metrics.end() && clock->second.n > 1 && clock->second.min > 0) {
      const double drift = static_cast<double>(clock->second.max) / static_cast<double>(clock->second.min);
      if (drift > kClockDrift) {
        alarms.Add("R010", sums.time_ns, Format("SM clock varied by %.0f %% between samples", 100 * (drift - 1)),
                   "power or thermal limits; clocks locked in one run and not in the other", where);
      }
    }
  }
  for (const auto& [name, stat] : stats.metrics) {
    if (stat.n > 0 && stat.max >= uint64_t{1} << 62) {
      alarms.Add("R012", sums.time_ns, Format("%s has a value of %.3g", name.c_str(), static_cast<double>(stat.max)),
                 "a counter that went backwards (negative difference), or an overflow", where);
    }
  }
  // A kernel that lives in L2 can move nothing at all; one that takes a millisecond cannot.
  constexpr double kLongEnoughNs = 1e6;
  if (measured && quantities.has_bytes && sums.dram_bytes <= 0 && stats.launches > 0 &&
      sums.time_ns / static_cast<double>(stats.launches) > kLongEnoughNs) {
    alarms.Add("R012", sums.time_ns,
               Format("no DRAM bytes in %s a launch",
                      WithPrefix(seconds / static_cast<double>(stats.launches), "s").c_str()),
               "the DRAM counters did not run; values lost in a conversion of units", where);
  }
}

void CheckRowsAddUp(const std::vector<Row>& rows, const Sums& total, Alarms& alarms) {
  Sums sum;
  for (const Row& row : rows) sum.Add(row.sums);
  // The two sums add the same doubles in different orders, hence the tolerance of some roundings a row.
  const auto check = [&](const char* what, double a, double b) {
    if (std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b))) return;
    alarms.Add("R006", 0, Format("%s of the rows is %.17g, of the whole run %.17g", what, a, b),
               "a mistake in rfinject; please report it");
  };
  check("launches", static_cast<double>(sum.launches), static_cast<double>(total.launches));
  check("time", sum.time_ns, total.time_ns);
  check("FLOP", sum.total_flop(), total.total_flop());
  check("model FLOP", sum.model_flop, total.model_flop);
  check("DRAM bytes", sum.dram_bytes, total.dram_bytes);
}

void CheckForwardAndBackward(const Report& report, Alarms& alarms) {
  double forward = 0, backward = 0;
  for (const Row& row : report.phases) {
    if (row.phase == kPhaseNames[static_cast<size_t>(Phase::kForward)]) forward += row.sums.model_flop;
    if (row.phase == kPhaseNames[static_cast<size_t>(Phase::kBackward)]) backward += row.sums.model_flop;
  }
  if (forward <= 0 || backward <= 0) return;  // inference, or no model FLOP known
  // A run that ended inside its first step has part of a backward. (An import's one step is said by the importer.)
  if (report.steps == 0) return;
  const double ratio = backward / forward;
  if (ratio >= kBackwardOverForwardLow && ratio <= kBackwardOverForwardHigh) return;
  alarms.Add(
      "R005", 0,
      Format("backward model FLOP are %.3f times the forward's; a whole training step gives 1.8 to 2.05", ratio),
      ratio < kBackwardOverForwardLow
          ? "frozen layers; forwards without a backward (validation, a second network); backward not attributed"
          : "forward not attributed; several backwards a forward; recomputation counted as backward");
}

void CheckModelFlop(const Report& report, Alarms& alarms) {
  const double model = report.total.model_flop, executed = report.total.total_flop();
  if (model <= 0 || executed <= 0) return;
  const double ratio = executed / model;
  if (ratio < kExecutedOverModelLow) {
    alarms.Add(
        "R009", report.total.time_ns,
        Format("executed FLOP are %.3f of the model's; no known algorithm needs so few", ratio),
        "FLOP on a path that was not counted (tensor cores); rows lost in a conversion; fewer images than said");
  } else if (ratio > kExecutedOverModelHigh) {
    alarms.Add("R009", report.total.time_ns, Format("executed FLOP are %.3f times the model's", ratio),
               "recomputation; more than one step or batch in the counts; padding to tiles of tiny layers");
  }
}

void CheckWallTime(const Run& run, const Report& report, Alarms& alarms) {
  // A step's wall time bounds its kernels' time on one stream; several devices and streams overlap.
  const double wall = report.step_wall_ns * static_cast<double>(std::max<size_t>(1, run.devices.size()));
  if (run.key.source != SourceKind::kMeasured || wall <= 0 || report.step_gpu_ns <= wall * kRoofTolerance) return;
  alarms.Add("R008", report.total.time_ns,
             Format("kernels take %s a step, the step takes %s", WithPrefix(report.step_gpu_ns * 1e-9, "s").c_str(),
                    WithPrefix(report.step_wall_ns * 1e-9, "s").c_str()),
             "kernels that overlap on several streams; times taken while profiling slowed them; steps miscounted");
}

}  // namespace

std::vector<Alarm> CheckInvariants(const Profile& profile, const Run& run, std::string_view chip,
                                   const Report& report) {
  Alarms alarms;
  const bool measured = run.key.source == SourceKind::kMeasured || run.key.source == SourceKind::kImported;
  for (const auto& [key, stats] : run.launches) {
    CheckKernel(report.machine, chip, key, stats, Quantities(stats, profile.metrics, chip), measured, alarms);
  }
  CheckForwardAndBackward(report, alarms);
  CheckRowsAddUp(report.rows, report.total, alarms);
  CheckRowsAddUp(report.phases, report.total, alarms);
  CheckWallTime(run, report, alarms);
  CheckModelFlop(report, alarms);
  return alarms.Take();
}

}  // namespace rfinject::cli
