#include "cli/trace/apply/state.h"

#include "cli/trace/apply/errors.h"

namespace rfinject::cli {

absl::Status State::Charge(uint64_t bytes, const Record& record) {
  if (bytes > budget) return DamageAt(record.offset, "holds more distinct launch keys than fit in memory");
  budget -= bytes;
  return absl::OkStatus();
}

absl::Status State::FindRun(uint32_t id, const Record& record, RunState** run) {
  id = RunId(id);
  const auto it = id == 1 ? runs.try_emplace(1).first : runs.find(id);
  if (it == runs.end()) return Undefined(record, "run", id);
  *run = &it->second;
  return absl::OkStatus();
}

uint32_t State::OwnerOf(uint32_t model) const {
  const auto it = owners.find(model);
  return it == owners.end() ? 1 : it->second;
}

absl::Status State::FindName(uint32_t id, const Record& record, const std::string** text) const {
  const size_t place = id == 0 ? 0 : name_index.Find(id);
  if (place == IdIndex::kNone) return Undefined(record, "name", id);
  *text = &names[place];
  return absl::OkStatus();
}

}  // namespace rfinject::cli
