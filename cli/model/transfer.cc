#include "cli/model/transfer.h"

#include <algorithm>

namespace rfinject::cli {
namespace {

// An expected value between the ends of its interval; for shares the low end is that of the longer time.
struct Range {
  double low, expected, high;
};

struct Link {
  Range latency_s;
  Range share;  // of the link's rate
};

// Copies of 64 MiB and more: 12.4 of 15.8 GB/s over PCIe 3 (NVIDIA/nvbandwidth, README, its example output), 54.8 and
// 55.6 of 63.0 GB/s over PCIe 5 (H100; Voltage Park's benchmarks, and a tutorial of nvbandwidth).
constexpr Link kCopy = {.latency_s = {2e-6, 3e-6, 10e-6}, .share = {0.76, 0.83, 0.89}};
// all_reduce_perf and alltoall_perf of nccl-tests, as users published them: 233 to 236 of 300 GB/s with eight A100,
// 361 of 450 with eight H100. 8 bytes take 17 us (H100) to 32 us (A100), 16 us with two GPUs.
constexpr Link kNvlinkCollective = {.latency_s = {15e-6, 20e-6, 35e-6}, .share = {0.6, 0.78, 0.83}};
// Between 4 of 15.8 GB/s, two T4 that reach each other through the host's memory, and what copies reach.
constexpr Link kPcieCollective = {.latency_s = {15e-6, 20e-6, 35e-6}, .share = {0.25, 0.5, 0.83}};

}  // namespace

ExpectedTime ExpectedTransfer(const Transfer& transfer, const Gpu& gpu) {
  const bool nvlink = transfer.nvlink_bytes > 0;
  const double bytes = nvlink ? transfer.nvlink_bytes : transfer.pcie_bytes;
  const double rate = nvlink ? gpu.nvlink_bytes_per_s : gpu.pcie_bytes_per_s;
  ExpectedTime time;
  if (!(bytes > 0) || !(rate > 0)) return time;
  const Link& link = !transfer.collective ? kCopy : nvlink ? kNvlinkCollective : kPcieCollective;
  time.ideal_s = std::max(ExpectedTimes::kLaunchIntervalS, bytes / rate);
  time.low_s = link.latency_s.low + bytes / (rate * link.share.high);
  time.expected_s = link.latency_s.expected + bytes / (rate * link.share.expected);
  time.high_s = link.latency_s.high + bytes / (rate * link.share.low);
  time.calibrated = Calibrated::kFamily;
  return time;
}

}  // namespace rfinject::cli
