#include "collector/pm_window.h"

#include <algorithm>
#include <cmath>

namespace rfinject {
namespace {

uint64_t Rounded(double value) { return value > 0 ? static_cast<uint64_t>(std::llround(std::min(value, 9e18))) : 0; }

}  // namespace

bool FoldPmSamples(const std::vector<PmSample>& samples, bool has_tensor, PmWindow* window) {
  std::vector<const PmSample*> good;
  for (const PmSample& sample : samples) {
    if (sample.end_ns <= sample.start_ns || (!good.empty() && sample.start_ns < good.back()->start_ns)) continue;
    if (!std::isfinite(sample.dram_read_bytes) || !std::isfinite(sample.dram_write_bytes)) continue;
    if (has_tensor && !std::isfinite(sample.tensor_percent)) continue;
    good.push_back(&sample);
  }
  if (good.empty()) return false;
  const uint64_t begin = good.front()->start_ns, end = good.back()->end_ns;
  const uint64_t span = end > begin ? end - begin : 1;
  // There are no more bins than samples: a bin without a sample would read as an idle GPU.
  const size_t bins = std::min(kMaxPmBins, good.size());
  window->bin_ns = (span + bins - 1) / bins;
  std::vector<double> bytes(bins), tensor_ns(bins), covered_ns(bins);
  double read = 0, written = 0, active_ns = 0, covered = 0;
  for (const PmSample* sample : good) {
    const double ns = static_cast<double>(sample->end_ns - sample->start_ns);
    const double active = has_tensor ? std::clamp(sample->tensor_percent, 0.0, 100.0) / 100 * ns : 0;
    const uint64_t middle = sample->start_ns + (sample->end_ns - sample->start_ns) / 2;
    const size_t bin = std::min<size_t>((middle - begin) / window->bin_ns, bins - 1);
    bytes[bin] += sample->dram_read_bytes + sample->dram_write_bytes;
    tensor_ns[bin] += active;
    covered_ns[bin] += ns;
    read += sample->dram_read_bytes;
    written += sample->dram_write_bytes;
    active_ns += active;
    covered += ns;
  }
  window->start_unix_ns = static_cast<int64_t>(begin);
  window->duration_ns = Rounded(covered);
  window->samples = good.size();
  window->dram_read_bytes = Rounded(read);
  window->dram_write_bytes = Rounded(written);
  window->has_tensor = has_tensor;
  window->tensor_active_ns = Rounded(active_ns);
  window->bin_dram_bytes.clear();
  window->bin_tensor_permille.clear();
  for (size_t bin = 0; bin < bins; ++bin) {
    window->bin_dram_bytes.push_back(Rounded(bytes[bin]));
    if (!has_tensor) continue;
    const double share = covered_ns[bin] > 0 ? tensor_ns[bin] / covered_ns[bin] : 0;
    window->bin_tensor_permille.push_back(static_cast<uint32_t>(Rounded(share * 1000)));
  }
  return true;
}

}  // namespace rfinject
