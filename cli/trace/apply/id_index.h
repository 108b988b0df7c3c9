// File: id_index.h
//
// Finds the place of what has an id. Writers count ids from 1, so that most are found by one look into an array.
#ifndef RFINJECT_CLI_TRACE_APPLY_ID_INDEX_H_
#define RFINJECT_CLI_TRACE_APPLY_ID_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace rfinject::cli {

class IdIndex {
 public:
  static constexpr size_t kNone = SIZE_MAX;

  size_t Find(uint32_t id) const {
    if (id < near_.size() && near_[id] != 0) return near_[id] - 1;
    return far_.empty() ? kNone : FindFar(id);
  }
  bool Has(uint32_t id) const { return Find(id) != kNone; }
  // Returns where the id's element lies, and whether that is `place` because the id is new.
  std::pair<size_t, bool> TryEmplace(uint32_t id, size_t place) {
    const size_t known = Find(id);
    if (known != kNone) return {known, false};
    // The array is not longer than twice the number of ids.
    if (id < 2 * place + 64 && place < UINT32_MAX) {
      if (id >= near_.size()) near_.resize(2 * (place + 64));
      near_[id] = static_cast<uint32_t>(place + 1);
    } else {
      far_.emplace(id, place);
    }
    return {place, true};
  }

 private:
  size_t FindFar(uint32_t id) const {
    const auto found = far_.find(id);
    return found == far_.end() ? kNone : found->second;
  }

  std::vector<uint32_t> near_;  // by id: the place and 1; 0: not here
  absl::flat_hash_map<uint32_t, size_t> far_;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_TRACE_APPLY_ID_INDEX_H_
