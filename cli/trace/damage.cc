#include "cli/trace/damage.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"

namespace rfinject::cli {
namespace {

constexpr char kOffset[] = "rfinject/offset";
constexpr char kCut[] = "rfinject/cut";

std::string Prefix(uint64_t offset) { return absl::StrCat("byte ", offset, ": "); }

}  // namespace

absl::Status DamageAt(uint64_t offset, std::string_view reason) {
  absl::Status status = absl::DataLossError(absl::StrCat(Prefix(offset), std::string(reason)));
  status.SetPayload(kOffset, absl::Cord(absl::StrCat(offset)));
  return status;
}

absl::Status CutAt(uint64_t offset, std::string_view reason) {
  absl::Status status = DamageAt(offset, reason);
  status.SetPayload(kCut, absl::Cord());
  return status;
}

bool IsCut(const absl::Status& status) { return status.GetPayload(kCut).has_value(); }

uint64_t DamageOffset(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kOffset);
  uint64_t offset = 0;
  if (payload) (void)absl::SimpleAtoi(std::string(*payload), &offset);
  return offset;
}

std::string_view DamageReason(const absl::Status& status) {
  std::string_view message(status.message().data(), status.message().size());
  if (!status.GetPayload(kOffset)) return message;
  message.remove_prefix(Prefix(DamageOffset(status)).size());
  return message;
}

}  // namespace rfinject::cli
