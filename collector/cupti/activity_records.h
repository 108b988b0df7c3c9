// File: activity_records.h
//
// The calls of CUPTI's by which activity records are asked for and read: those of the process, or those of one
// subscriber (subscription.h says which).
#ifndef RFINJECT_COLLECTOR_CUPTI_ACTIVITY_RECORDS_H_
#define RFINJECT_COLLECTOR_CUPTI_ACTIVITY_RECORDS_H_

#include <cstddef>
#include <cstdint>

#include "collector/cupti/subscription.h"

namespace rfinject::cupti {

class ActivityRecords {
 public:
  // Both must outlive the object.
  ActivityRecords(const Api& api, const Subscription& subscription) : api_(api), subscription_(subscription) {}

  // Whether nobody else can take these records.
  bool own() const { return subscription_.own_records; }

  CUptiResult Set(CUpti_ActivityAttribute attribute, uint8_t value) const;
  // Two functions of each, since CUPTI passes different parameters in the two cases.
  CUptiResult Register(CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete,
                       RecordsRequest own_request, RecordsComplete own_complete) const;
  CUptiResult Enable(CUpti_ActivityKind kind) const;
  CUptiResult Disable(CUpti_ActivityKind kind) const;
  // Hands back the buffers of all subscribers whose records are complete. `all`: also those that hold a record of
  // what still runs, which then has no time; only where the records are the process's, since others would lose
  // theirs.
  CUptiResult Flush(bool all) const;
  // Moves `record`, null before the first, to the next one in the buffer.
  CUptiResult Next(uint8_t* buffer, size_t valid, CUpti_Activity** record) const;
  // How many records CUPTI had no room for since the last call.
  uint64_t Dropped() const;

 private:
  const Api& api_;
  const Subscription& subscription_;
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_ACTIVITY_RECORDS_H_
