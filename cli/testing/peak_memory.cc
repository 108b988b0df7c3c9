#include "cli/testing/peak_memory.h"

#include <malloc.h>

#include <fstream>
#include <string>

#include "cli/testing/sanitized.h"

namespace rfinject::cli::testing {
namespace {

// A line of /proc/self/status in bytes; 0: there is none.
uint64_t StatusBytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    uint64_t kilobytes = 0;
    if (word == name && status >> kilobytes) return kilobytes << 10;
  }
  return 0;
}

}  // namespace

PeakMemory::PeakMemory() {
  ::malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << '5';  // forgets the peak so far
  at_first_ = StatusBytes("VmRSS:");
}

uint64_t PeakMemory::Bytes() const {
  const uint64_t peak = StatusBytes("VmHWM:");
  return kSanitized || at_first_ == 0 || peak < at_first_ ? 0 : peak - at_first_;
}

}  // namespace rfinject::cli::testing
