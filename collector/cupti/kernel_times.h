// File: kernel_times.h
//
// Times of kernels, copies and memory sets, from CUPTI's activity records, in bounded windows: one step at a time,
// seldom. Outside a window no kind is enabled and CUPTI instruments nothing.
#ifndef RFINJECT_COLLECTOR_CUPTI_KERNEL_TIMES_H_
#define RFINJECT_COLLECTOR_CUPTI_KERNEL_TIMES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collector/sync.h"

namespace rfinject::cupti {

struct Api;

class KernelTimes {
 public:
  struct Record {
    uint32_t correlation_id;  // of the launch
    uint64_t ns;
  };

  // One object a process, never destroyed: CUPTI's buffer callbacks carry no pointer, and may come at any time.
  explicit KernelTimes(const Api& api);
  // A CUptiResult.
  int Register();

  // Opens a window. A CUptiResult.
  int Begin();
  // Closes it: the kernels of the window must have finished (the caller has synchronised). `invalid` counts records
  // without a time, `dropped` those that CUPTI had no room for. When nothing has come although something was
  // `launched`, somebody else's callbacks got it, and the window is left as by Leave().
  int End(bool launched, std::vector<Record>* records, uint64_t* invalid, uint64_t* dropped);

  // CUPTI refused to end the window: kernels stay instrumented, and no counters may be armed any more.
  bool still_open() const { return open_; }

  // A window in which something was launched ends, and CUPTI never asked us for a buffer: somebody else's callbacks
  // are registered, and the kinds that are enabled may be theirs too.
  bool OthersHaveIt() noexcept;
  // Ends a window without a call: whoever has the callbacks now wants the kinds enabled.
  void Leave() noexcept;
  // Nobody else uses activity records any more: kinds that were left enabled are disabled, and the callbacks are ours
  // again. A CUptiResult.
  int TakeBack();

  // From CUPTI, on any thread.
  void RequestBuffer(uint8_t** buffer, size_t* size, size_t* max_records) noexcept;
  void CompleteBuffer(uint8_t* buffer, size_t size, size_t valid) noexcept;

 private:
  static constexpr size_t kBufferSize = size_t{1} << 20;  // about 5000 records
  static constexpr size_t kMaxBuffers = 64;               // at the same time

  const Api& api_;
  Mutex mutex_;
  std::vector<uint8_t*> pool_;  // zeroed
  size_t buffers_ = 0;          // allocated in all
  std::vector<Record> records_;
  uint64_t invalid_ = 0, dropped_ = 0;
  int DisableAll();

  bool open_ = false;
  bool left_ = false;
  uint64_t requests_ = 0;  // of buffers since Begin
  uint64_t in_cupti_ = 0;  // buffers that CUPTI has
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_KERNEL_TIMES_H_
