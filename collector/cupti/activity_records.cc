#include "collector/cupti/activity_records.h"

namespace rfinject::cupti {

CUptiResult ActivityRecords::Set(CUpti_ActivityAttribute attribute, uint8_t value) const {
  size_t size = sizeof value;
  return own() ? api_.cuptiActivitySetAttribute_v2(subscription_.handle, attribute, &size, &value)
               : api_.cuptiActivitySetAttribute(attribute, &size, &value);
}

CUptiResult ActivityRecords::Register(CUpti_BuffersCallbackRequestFunc request,
                                      CUpti_BuffersCallbackCompleteFunc complete, RecordsRequest own_request,
                                      RecordsComplete own_complete) const {
  return own() ? api_.cuptiActivityRegisterCallbacks_v2(subscription_.handle, own_request, own_complete)
               : api_.cuptiActivityRegisterCallbacks(request, complete);
}

CUptiResult ActivityRecords::Enable(CUpti_ActivityKind kind) const {
  return own() ? api_.cuptiActivityEnable_v2(subscription_.handle, kind, nullptr) : api_.cuptiActivityEnable(kind);
}

CUptiResult ActivityRecords::Disable(CUpti_ActivityKind kind) const {
  return own() ? api_.cuptiActivityDisable_v2(subscription_.handle, kind, nullptr) : api_.cuptiActivityDisable(kind);
}

CUptiResult ActivityRecords::Flush(bool all) const {
  return api_.cuptiActivityFlushAll(all && !own() ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
}

CUptiResult ActivityRecords::Next(uint8_t* buffer, size_t valid, CUpti_Activity** record) const {
  return own() ? api_.cuptiActivityGetNextRecord_v2(subscription_.handle, buffer, valid, record)
               : api_.cuptiActivityGetNextRecord(buffer, valid, record);
}

uint64_t ActivityRecords::Dropped() const {
  size_t dropped = 0;
  if (own()) {
    if (api_.cuptiActivityGetNumDroppedRecords_v2(subscription_.handle, nullptr, 0, &dropped) != CUPTI_SUCCESS)
      return 0;
  } else if (api_.cuptiActivityGetNumDroppedRecords == nullptr ||
             api_.cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped) != CUPTI_SUCCESS) {
    return 0;
  }
  return dropped;
}

}  // namespace rfinject::cupti
