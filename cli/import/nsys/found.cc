#include "cli/import/nsys/found.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace rfinject::cli {

void NsysFound::SayIn(RunBuilder* builder) const {
  if (without_call > 0) {
    const double share = static_cast<double>(without_call_ns) / static_cast<double>(std::max<uint64_t>(total_ns, 1));
    builder->Say({.id = "launch-not-recorded",
                  .text = absl::StrFormat("of %d of %d kernels and copies, %.2g %% of the GPU's time, the launch is "
                                          "not in the file, and so no range",
                                          without_call, builder->result.kernels, 100 * share)});
  }
  if (overlaps.count > 0) {
    builder->Say({.severity = trace::Severity::kWarning, .id = "kernels-overlap", .text = overlaps.Text()});
  }
  if (too_many_to_search) {
    builder->Say({.id = "overlaps-not-searched",
                  .text = "it has more kernels and copies than are searched for such that overlap on a stream"});
  }
  if (ranges_not_nesting > 0) {
    builder->Say({.id = "ranges-not-used",
                  .text = absl::StrCat(ranges_not_nesting,
                                       ranges_not_nesting == 1 ? " NVTX range of another kind was"
                                                               : " NVTX ranges of another kind were",
                                       " not used: they begin and end anywhere (NvtxStartEndRange), and nest in "
                                       "nothing")});
  }
}

}  // namespace rfinject::cli
