#include "collector/cupti/guest_records.h"

#include <array>
#include <cstring>
#include <utility>

namespace rfinject::cupti {
namespace {

constinit std::atomic<CUpti_BuffersCallbackRequestFunc> g_request{nullptr};
constinit std::atomic<CUpti_BuffersCallbackCompleteFunc> g_complete{nullptr};
constinit std::atomic<CUpti_SubscriberHandle> g_registered{nullptr};  // the subscription that has our callbacks

// A moment by CUPTI's clock, ns, and by the guest's.
struct Moment {
  uint64_t cupti = 0, guest = 0;
};
constinit std::atomic<CUpti_TimestampCallbackFunc> g_clock{nullptr};
constinit Moment g_clock_set;  // written before g_clock

// Calls CUPTI's function for the guest's subscription.
template <auto member, typename... Arguments>
CUptiResult ForGuest(Arguments... arguments) {
  const Api& api = *GuestsApi();
  const CUpti_SubscriberHandle own = GuestsOwn();
  return own != nullptr ? (api.*member)(own, arguments...) : CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
}

// Reads both clocks as nearly at once as a thread can that may be interrupted.
bool ReadMoment(CUpti_TimestampCallbackFunc clock, Moment* moment) {
  constexpr int kTries = 10;
  constexpr uint64_t kNear = 1'000;
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < kTries && least > kNear; ++i) {
    uint64_t before = 0, after = 0;
    if (ForGuest<&Api::cuptiGetTimestamp_v2>(&before) != CUPTI_SUCCESS) return false;
    const uint64_t guest = clock();
    if (ForGuest<&Api::cuptiGetTimestamp_v2>(&after) != CUPTI_SUCCESS) return false;
    if (after < before || after - before >= least) continue;
    least = after - before;
    *moment = {before + least / 2, guest};
  }
  return least != UINT64_MAX;
}

// Where the records of a kind have their times; zero ends the list. They stand at the same places in all versions of
// a record.
constexpr size_t kMostTimes = 3;
using Offsets = std::array<size_t, kMostTimes>;
Offsets TimesOf(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return {offsetof(KernelRecordPrefix, start), offsetof(KernelRecordPrefix, end),
              offsetof(KernelRecordPrefix, completed)};
    case CUPTI_ACTIVITY_KIND_MEMCPY:
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return {offsetof(TransferRecordPrefix, start), offsetof(TransferRecordPrefix, end)};
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return {offsetof(CUpti_ActivityMemcpyPtoP4, start), offsetof(CUpti_ActivityMemcpyPtoP4, end)};
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_RUNTIME:
      return {offsetof(CUpti_ActivityAPI, start), offsetof(CUpti_ActivityAPI, end)};
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return {offsetof(CUpti_ActivityOverhead3, start), offsetof(CUpti_ActivityOverhead3, end)};
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return {offsetof(CUpti_ActivitySynchronization, start), offsetof(CUpti_ActivitySynchronization, end)};
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      return {offsetof(CUpti_ActivityGraphTrace2, start), offsetof(CUpti_ActivityGraphTrace2, end)};
    case CUPTI_ACTIVITY_KIND_MARKER:
      return {offsetof(CUpti_ActivityMarker2, timestamp)};
    case CUPTI_ACTIVITY_KIND_MEMORY2:
      return {offsetof(CUpti_ActivityMemory4, timestamp)};
    default:
      return {};
  }
}

// A time that CUPTI did not take is 0 by every clock.
uint64_t Convert(uint64_t time, const Moment& from, const Moment& to) {
  if (time == 0 || time == UINT64_MAX || to.cupti <= from.cupti) return time;
  const auto since = static_cast<__int128>(static_cast<int64_t>(time - from.cupti));
  const auto passed = static_cast<__int128>(to.guest - from.guest);
  return from.guest + static_cast<uint64_t>(since * passed / static_cast<__int128>(to.cupti - from.cupti));
}

void ConvertTimes(uint8_t* buffer, size_t valid) {
  const CUpti_TimestampCallbackFunc clock = g_clock.load(std::memory_order_acquire);
  Moment now;
  if (clock == nullptr || !ReadMoment(clock, &now)) return;
  for (CUpti_Activity* record = nullptr; NextRecordOfGuest(buffer, valid, &record) == CUPTI_SUCCESS;) {
    for (const size_t offset : TimesOf(record->kind)) {
      if (offset == 0) break;
      uint64_t time = 0;
      uint8_t* const place = reinterpret_cast<uint8_t*>(record) + offset;
      std::memcpy(&time, place, sizeof time);
      time = Convert(time, g_clock_set, now);
      std::memcpy(place, &time, sizeof time);
    }
  }
}

void CUPTIAPI OnRequest(uint8_t** buffer, size_t* size, size_t* max_records, void*) {
  *buffer = nullptr;
  *size = *max_records = 0;
  if (const auto request = g_request.load()) request(buffer, size, max_records);
}

void CUPTIAPI OnComplete(uint8_t* buffer, size_t size, size_t valid, void*) {
  if (valid != 0) ConvertTimes(buffer, valid);
  // Kineto's records are of no context, as all are since CUDA 6.
  if (const auto complete = g_complete.load()) complete(nullptr, 0, buffer, size, valid);
}

}  // namespace

CUptiResult RegisterGuestsCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                    CUpti_BuffersCallbackCompleteFunc complete) {
  if (request == nullptr || complete == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  g_request.store(request);
  g_complete.store(complete);
  // Kineto registers with each recording, which CUPTI 13.3 may refuse (jax PR 38464).
  const CUpti_SubscriberHandle own = GuestsOwn();
  if (own != nullptr && g_registered.load() == own) return CUPTI_SUCCESS;
  const CUptiResult result = ForGuest<&Api::cuptiActivityRegisterCallbacks_v2>(&OnRequest, &OnComplete);
  if (result == CUPTI_SUCCESS) g_registered.store(own);
  return result;
}

CUptiResult EnableGuestsKind(bool enable, CUpti_ActivityKind kind) {
  void* const no_config = nullptr;
  return enable ? ForGuest<&Api::cuptiActivityEnable_v2>(kind, no_config)
                : ForGuest<&Api::cuptiActivityDisable_v2>(kind, no_config);
}

CUptiResult EnableGuestsRuntimeApi(CUpti_CallbackId cbid, bool enable) {
  return ForGuest<&Api::cuptiActivityEnableRuntimeApi_v2>(cbid, static_cast<uint8_t>(enable));
}

CUptiResult EnableGuestsDriverApi(CUpti_CallbackId cbid, bool enable) {
  return ForGuest<&Api::cuptiActivityEnableDriverApi_v2>(cbid, static_cast<uint8_t>(enable));
}

CUptiResult NextRecordOfGuest(uint8_t* buffer, size_t valid, CUpti_Activity** record) {
  return ForGuest<&Api::cuptiActivityGetNextRecord_v2>(buffer, valid, record);
}

CUptiResult DroppedRecordsOfGuest(CUcontext context, uint32_t stream, size_t* dropped) {
  return ForGuest<&Api::cuptiActivityGetNumDroppedRecords_v2>(context, stream, dropped);
}

CUptiResult SetGuestsAttribute(CUpti_ActivityAttribute attribute, size_t* size, void* value) {
  return ForGuest<&Api::cuptiActivitySetAttribute_v2>(attribute, size, value);
}

CUptiResult PushGuestsCorrelation(CUpti_ExternalCorrelationKind kind, uint64_t id) {
  return ForGuest<&Api::cuptiActivityPushExternalCorrelationId_v2>(kind, id);
}

CUptiResult PopGuestsCorrelation(CUpti_ExternalCorrelationKind kind, uint64_t* id) {
  return ForGuest<&Api::cuptiActivityPopExternalCorrelationId_v2>(kind, id);
}

CUptiResult SetGuestsClock(CUpti_TimestampCallbackFunc clock) {
  if (clock == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  g_clock.store(nullptr);
  if (!ReadMoment(clock, &g_clock_set)) return CUPTI_ERROR_UNKNOWN;
  g_clock.store(clock, std::memory_order_release);
  return CUPTI_SUCCESS;
}

CUptiResult TimeOfGuest(uint64_t* time) {
  if (time == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  if (const CUpti_TimestampCallbackFunc clock = g_clock.load(std::memory_order_acquire)) {
    *time = clock();
    return CUPTI_SUCCESS;
  }
  return ForGuest<&Api::cuptiGetTimestamp_v2>(time);
}

}  // namespace rfinject::cupti
