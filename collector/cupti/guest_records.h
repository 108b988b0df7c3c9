// File: guest_records.h
//
// Activity records for a guest that knows those of the process only (PyTorch's Kineto), where CUPTI refuses these
// because others have records of their own (subscription.h). Each call for records of the process becomes the call
// for those of the guest's own subscription (guest_subscriber.h).
//
// CUPTI takes times from a clock of the tool's only for a single subscriber. Kineto sets one, the processor's
// counter, and reads all records by it. So times in its buffers are converted: two moments are known by both clocks,
// one when the clock was set, one when the buffer is handed over, and the records lie between them.
#ifndef RFINJECT_COLLECTOR_CUPTI_GUEST_RECORDS_H_
#define RFINJECT_COLLECTOR_CUPTI_GUEST_RECORDS_H_

#include "collector/cupti/guest_subscriber.h"

namespace rfinject::cupti {

// Each does what the function of CUPTI's does after which it is called, for the guest. They are to be called only
// where GuestsApi() is not null.
CUptiResult RegisterGuestsCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                    CUpti_BuffersCallbackCompleteFunc complete);
CUptiResult EnableGuestsKind(bool enable, CUpti_ActivityKind kind);
CUptiResult EnableGuestsRuntimeApi(CUpti_CallbackId cbid, bool enable);
CUptiResult EnableGuestsDriverApi(CUpti_CallbackId cbid, bool enable);
CUptiResult NextRecordOfGuest(uint8_t* buffer, size_t valid, CUpti_Activity** record);
CUptiResult DroppedRecordsOfGuest(CUcontext context, uint32_t stream, size_t* dropped);
CUptiResult SetGuestsAttribute(CUpti_ActivityAttribute attribute, size_t* size, void* value);
CUptiResult PushGuestsCorrelation(CUpti_ExternalCorrelationKind kind, uint64_t id);
CUptiResult PopGuestsCorrelation(CUpti_ExternalCorrelationKind kind, uint64_t* id);
CUptiResult SetGuestsClock(CUpti_TimestampCallbackFunc clock);
CUptiResult TimeOfGuest(uint64_t* time);

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_GUEST_RECORDS_H_
