#include "cli/format/testing/synthetic_report.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cli/report/fold.h"
#include "cli/testing/sample_profile.h"
#include "cli/testing/sample_report.h"

namespace rfinject::cli::testing {
namespace {

void Finish(Report* report) {
  report->total.sums = {};
  for (const Row& row : report->rows) report->total.sums.Add(row.sums);
  for (Row& row : report->rows) {
    row.derived = Derive(row.sums);
    row.time_share = row.sums.time_ns() / report->total.sums.time_ns();
  }
  report->total.derived = Derive(report->total.sums);
  report->clock.gpu_ns = report->total.sums.time_ns() / static_cast<double>(report->steps.count);
}

void SetLeast(const Machine& machine, Sums* sums) {
  const MinimalTime least = LeastTime(machine, {.flop = sums->flop(), .dram_bytes = sums->dram_bytes()});
  (*sums)[Quantity::kLeastCompute] = least.compute_s * 1e9;
  (*sums)[Quantity::kLeastMemory] = least.memory_s * 1e9;
  (*sums)[Quantity::kLeast] = least.total_s() * 1e9;
}

}  // namespace

Report SmallReport() {
  Report report;
  report.run.source = SourceKind::kMeasured;
  report.run.models = {"Net"};
  report.run.batch_size = 8;
  report.run.policy.cudnn_tf32 = 2;
  report.run.policy.matmul_tf32 = 1;
  report.device.name = "NVIDIA A100-SXM4-40GB";
  report.machine = SampleA100();
  report.steps.count = 10;
  report.queue.shortest_ns = 2000;
  const auto roof = [&](Precision precision, RoofKind kind, double peak, double bandwidth, bool used) {
    report.roofs.push_back({precision, {}, MemoryLevel::kDram, kind, peak, bandwidth, used});
  };
  roof(Precision::kFp32, RoofKind::kDatasheet, 19.5e12, 1555e9, true);
  roof(Precision::kTf32Tensor, RoofKind::kDatasheet, 156e12, 1555e9, true);
  roof(Precision::kFp16Tensor, RoofKind::kDatasheet, 312e12, 1555e9, false);
  roof(Precision::kBf16Tensor, RoofKind::kDatasheet, 312e12, 1555e9, false);
  roof(Precision::kTf32Tensor, RoofKind::kMeasuredClock, 140e12, 1555e9, true);
  roof(Precision::kTf32Tensor, RoofKind::kEmpirical, 125e12, 1400e9, true);
  // Of ten steps: time in ns, FLOP, bytes.
  const auto row = [&](const char* layer, Phase phase, double time_ns, Precision precision, double flop,
                       double bytes) -> Row& {
    Row made;
    made.model = layer[0] == '\0' ? "" : "Net";
    made.layer = layer;
    made.phase = phase;
    made.sums.launches = 10;
    made.sums[Quantity::kTime] = time_ns;
    made.sums[FlopIn(precision)] = flop;
    made.sums[Quantity::kModelFlop] = flop;
    made.sums[Quantity::kDramBytes] = bytes;
    SetLeast(report.machine, &made.sums);
    made.order = report.rows.size();
    report.rows.push_back(made);
    return report.rows.back();
  };
  Row& conv = row("features.conv", Phase::kForward, 4e6, Precision::kTf32Tensor, 4e11, 2e9);
  conv.time.relative = 0.2, conv.bytes.relative = 0.3;
  row("features.norm", Phase::kBackward, 2e6, Precision::kFp32, 1.5e9, 2e9);
  row("", Phase::kOptimizer, 2e6, Precision::kFp32, 1e8, 6e8);
  row("features.copy", Phase::kForward, 1e6, Precision::kFp32, 0, 1e9);
  row("features.lost", Phase::kForward, 0.5e6, Precision::kFp32, 0, 0);
  row("head", Phase::kBackward, 0.5e6, Precision::kFp32, 8e9, 1e8);  // 16 TFLOP/s; held against 19.5, it is below
  row("head.impossible", Phase::kForward, 1e5, Precision::kFp32, 4e9, 1e8);  // 40 TFLOP/s
  Finish(&report);
  return report;
}

Report LongReport() {
  Report report = SmallReport();
  report.steps.count = 9000;
  report.rows.back().sums[Quantity::kTime] = 4000;
  Finish(&report);
  return report;
}

Report LargeReport(size_t rows) {
  Report report = SampleReports(By::kKernel)[1];
  report.rows.clear();
  std::mt19937 random(5000);  // its sequence is fixed by the standard, that of the distributions is not
  const auto uniform = [&] { return static_cast<double>(random()) / 4294967296.0; };
  constexpr Precision kUsed[] = {Precision::kTf32Tensor, Precision::kFp32, Precision::kFp32, Precision::kFp16Tensor,
                                 Precision::kBf16Tensor};
  constexpr Phase kPhases[] = {Phase::kForward, Phase::kBackward, Phase::kOptimizer};
  for (size_t i = 0; i < rows; ++i) {
    Row row;
    row.model = "Synthetic";
    row.layer = "blocks." + std::to_string(i / 40) + ".part" + std::to_string(i % 40 / 3);
    row.phase = kPhases[i % 3];
    row.op = "aten::op" + std::to_string(i % 57);
    row.kernel = "void at::native::vectorized_elementwise_kernel<" + std::to_string(i % 91) +
                 ", at::native::CUDAFunctor<float>, at::detail::Array<char*, 3>>(int, float, at::detail::Array)";
    row.class_name = "Part";
    row.sums.launches = report.steps.count;
    row.sums[Quantity::kDramBytes] = 1e4 * std::pow(10, 4 * uniform()) * static_cast<double>(report.steps.count);
    if (uniform() > 0.1) {
      const Quantity flop = FlopIn(kUsed[random() % std::size(kUsed)]);
      row.sums[flop] = row.sums.dram_bytes() * std::pow(10, -1.5 + 4.5 * uniform());
      row.sums[Quantity::kModelFlop] = row.sums[flop];
    }
    row.sums[Quantity::kCompulsoryBytes] = row.sums.dram_bytes();
    SetLeast(report.machine, &row.sums);
    row.sums[Quantity::kTime] = row.sums.least_ns() / (0.02 + 0.95 * uniform());
    row.sums[Quantity::kTimeWithCounters] = row.sums.time_ns();
    row.order = i;
    report.rows.push_back(std::move(row));
  }
  Finish(&report);
  std::stable_sort(report.rows.begin(), report.rows.end(),
                   [](const Row& a, const Row& b) { return a.sums.time_ns() > b.sums.time_ns(); });
  return report;
}

Report DeepReport(size_t blocks) {
  Profile profile = SampleResNet18(SampleA100());
  Run& run = profile.runs.begin()->second;
  const std::string first = "layer1.0.";
  const auto launches = run.launches;
  const auto layers = run.layers;
  for (size_t i = 0; i < blocks; ++i) {
    const auto copy = [&](LayerKey key) {
      key.path = "deep." + std::to_string(i) + "." + key.path.substr(first.size());
      return key;
    };
    for (const auto& [key, stats] : launches) {
      if (!key.layer.path.starts_with(first)) continue;
      LaunchKey another = key;
      another.layer = copy(key.layer);
      run.launches.emplace(another, stats);
    }
    for (const auto& [key, layer] : layers) {
      if (key.path.starts_with(first)) run.layers.emplace(copy(key), layer);
    }
  }
  return FoldProfile(profile, [](const Run&) { return SampleA100(); }, {.by = By::kLayer}).front();
}

Report HostileReport() {
  Report report = SampleReports(By::kLayer)[1];
  report.run.models = {"Evil</script><script>alert(1)</script>"};
  // What the program was told is a name, too.
  for (ProcessInfo& process : report.process.list) process.argv = {"python3", "main.py", "-a", report.run.models[0]};
  report.device.name = "A100 \"quoted\" & <b>bold</b>";
  report.headline.most_to_win = {
      {.class_name = "<Class>", .model = "Evil</script>", .layer = "&<b>", .layers = 2, .ns = 1e6}};
  report.alarms.push_back({"R999", "alarm </ul><script>alert(3)</script> has a value of 1e+19", "an overflow",
                           AlarmPlace{"'single' \"double\"", "where<&>", Phase::kForward, "kernel</code>"}});
  report.kept.diagnostic.push_back(
      {Severity::kWarning, "id", "diagnostic <svg onload=alert(4)>", "remedy \x01\x1b[31m"});
  const char* names[] = {"</script><script>document.title='owned'</script>",
                         "</style></title>--><!-- ]]>",
                         "a&b<c>d\"e'f",
                         "control\x01\x02\x1b[31mred\x7f",
                         "right\xe2\x80\xaetfel",               // RIGHT-TO-LEFT OVERRIDE
                         "\xd7\xa9\xd7\x9b\xd7\x91\xd7\x94.0",  // Hebrew, which is legitimate
                         "broken\xff\xc3(\xed\xa0\x80utf8",     // no UTF-8
                         "\xe5\xb1\x82.\xf0\x9f\x94\xa5",       // CJK and an emoji
                         "line\nbreak\ttab\r",
                         "=cmd|'/c calc'!A1, \"quoted\"",
                         "zero\xe2\x80\x8bwidth\xef\xbb\xbf",
                         "separator\xe2\x80\xa8paragraph\xe2\x80\xa9"};
  std::vector<Row> rows;
  for (size_t i = 0; i < std::size(names); ++i) {
    Row row = report.layer_phases[i % report.layer_phases.size()];
    row.layer = names[i];
    row.model = report.run.models[0];
    row.class_name = "Class<" + std::to_string(i) + ">";
    row.group = row.class_name + " <group>";
    row.sums[Quantity::kTime] = 1e6 * static_cast<double>(std::size(names) - i);
    rows.push_back(row);
  }
  report.layer_phases.clear();
  report.rows = std::move(rows);
  Finish(&report);
  return report;
}

}  // namespace rfinject::cli::testing
