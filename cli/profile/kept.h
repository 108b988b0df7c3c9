// File: kept.h
//
// KeptList holds the records of one kind that are merely kept of a run (@kept in the schema): those that say the same
// things are one, added up by the schema's rule. Ten thousand ranks must not need ten thousand times the memory, so
// only the first kMostKept of them are kept, in the order of what they say. What is among the first of the whole is
// among the first of every part that holds it, so the order of adding does not matter.
#ifndef RFINJECT_CLI_PROFILE_KEPT_H_
#define RFINJECT_CLI_PROFILE_KEPT_H_

#include <cstddef>
#include <iterator>
#include <set>
#include <utility>

#include "proto/rfinject/v1/trace.schema.h"

namespace rfinject::cli {

template <typename Record>
class KeptList {
 public:
  // Returns whether nothing of the kind was said before.
  bool Add(Record record) {
    auto place = records_.lower_bound(record);
    if (place != records_.end() && !ComesBefore(record, *place)) {
      auto known = records_.extract(place++);
      Merge(record, &known.value());
      records_.insert(place, std::move(known));
      return false;
    }
    records_.insert(place, std::move(record));
    if (records_.size() > trace::kMostKept<Record>) records_.erase(std::prev(records_.end()));
    return true;
  }

  auto begin() const { return records_.begin(); }
  auto end() const { return records_.end(); }
  size_t size() const { return records_.size(); }
  bool empty() const { return records_.empty(); }

  friend bool operator==(const KeptList&, const KeptList&) = default;

 private:
  struct Order {
    bool operator()(const Record& a, const Record& b) const { return ComesBefore(a, b); }
  };
  std::set<Record, Order> records_;
};

// What is kept of a run. A new kind of record is a list here without a line of ours.
using KeptOfRun = trace::KeptRecords<KeptList>;

// Adds what another run says.
inline void Merge(const KeptOfRun& from, KeptOfRun* into) {
  const auto add = [](const auto* other, auto* list) {
    for (const auto& record : *other) list->Add(record);
  };
  trace::ForEachList(add, &from, into);
}

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PROFILE_KEPT_H_
