// File: kernel_times.h
//
// KernelTimes takes the times of kernels, copies and memory sets from CUPTI's activity records, for a few steps at a
// time. Outside such a window none of the records' kinds is enabled, and CUPTI instruments nothing.
//
// The thread that ends the steps opens and closes the window. What was launched in it may run much later: our own
// thread asks for the records until all have come, and nothing is waited for. CUPTI asks for buffers and hands them
// back on threads of its own, or on the program's.
#ifndef RFINJECT_COLLECTOR_CUPTI_KERNEL_TIMES_H_
#define RFINJECT_COLLECTOR_CUPTI_KERNEL_TIMES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "collector/cupti/activity_records.h"
#include "collector/sync.h"

namespace rfinject::cupti {

class LaunchKeys;

class KernelTimes {
 public:
  struct Record {
    uint32_t correlation_id;  // of the launch
    uint64_t ns;
    uint64_t start_ns = 0;  // by CUPTI's clock
    // Of what a graph has launched: the number of its node, where CUPTI gives one, and what it ran.
    uint64_t node_id = 0;
    bool transfer = false;
    uint32_t device = 0, stream = 0;
    uint32_t kernel = 0;  // the recorder's id of its name; 0: a name that was never launched or captured
    std::array<uint32_t, 3> grid{}, block{};
  };

  // A process has one object, which is never destroyed: CUPTI's buffer callbacks carry no pointer, and may come at
  // any time.
  KernelTimes(const Api& api, const Subscription& subscription, LaunchKeys& keys);

  // --- For the thread that ends the steps. An int that is returned is a CUptiResult.

  // Gives CUPTI the callbacks that bring and take its buffers. Must succeed before anything else is called.
  int Register();
  // Opens a window: from now on CUPTI records.
  int Begin();
  // Closes the window: what is launched from now on has no record.
  int End();

  // --- For our own thread, after End.

  // Asks CUPTI for the records of what has run, or, where `all` is true, for every record that it has: what still
  // runs has no time then.
  int Flush(bool all);
  // How many records have come since Begin.
  size_t received() noexcept;
  // Takes the times; `invalid` receives the number of records without one, `dropped` of those that CUPTI had no room
  // for.
  void Take(std::vector<Record>* records, uint64_t* invalid, uint64_t* dropped) noexcept;

  // Whether CUPTI has refused to end the window: kernels stay instrumented then, and nothing may be counted any
  // more.
  bool still_open() const { return open_; }

  // Whether the records are the process's, and CUPTI never asked us for a buffer in the window that ends. If
  // something was launched in it, another tool's callbacks are registered, and the kinds that are enabled may be that
  // tool's too.
  bool OthersHaveIt() noexcept;
  // Ends a window whose records nobody wants. Where they are the process's, without calling CUPTI: the tool that has
  // the callbacks now wants the kinds enabled.
  void Leave() noexcept;
  // Must be called when no other tool uses activity records any more: disables the kinds that Leave left enabled, and
  // makes the callbacks ours again.
  int TakeBack();

  // --- For CUPTI, on any thread.

  // Gives CUPTI an empty buffer, or none.
  void RequestBuffer(uint8_t** buffer, size_t* size, size_t* max_records) noexcept;
  // Takes a buffer back, and the times out of its first `valid` bytes.
  void CompleteBuffer(uint8_t* buffer, size_t size, size_t valid) noexcept;

 private:
  static constexpr size_t kBufferSize = size_t{1} << 20;  // about 5000 records
  static constexpr size_t kMaxBuffers = 64;               // at the same time

  int DisableAll();
  void ReadRecords(uint8_t* buffer, size_t valid) noexcept RFINJECT_REQUIRES(lock_);

  const Api& api_;
  const ActivityRecords activity_;
  LaunchKeys& keys_;
  Mutex lock_;
  std::vector<uint8_t*> pool_ RFINJECT_GUARDED_BY(lock_);  // empty buffers, zeroed
  size_t buffers_ RFINJECT_GUARDED_BY(lock_) = 0;          // allocated in all
  std::vector<Record> records_ RFINJECT_GUARDED_BY(lock_);
  uint64_t invalid_ RFINJECT_GUARDED_BY(lock_) = 0;
  uint64_t dropped_ RFINJECT_GUARDED_BY(lock_) = 0;
  uint64_t requests_ RFINJECT_GUARDED_BY(lock_) = 0;  // of buffers since Begin
  uint64_t in_cupti_ RFINJECT_GUARDED_BY(lock_) = 0;  // buffers that CUPTI has

  // Used only by the thread that ends the steps.
  bool open_ = false;
  bool left_ = false;
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_KERNEL_TIMES_H_
