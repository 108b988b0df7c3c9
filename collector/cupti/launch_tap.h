// File: launch_tap.h
//
// LaunchTap is what CUPTI calls when the program calls the driver: the path of every launch.
//
// Threads of the program that launch, copy, allocate or destroy a context come in through CUPTI's callback. They look
// up the launch's key and record it (no lock, no allocation, nothing of CUDA); only while kernels are timed they also
// write a log, under its lock, and a launch whose counters are wanted opens a range (range_gate.h). Nothing here
// throws, waits without bound or calls the driver.
//
// The thread that ends the steps subscribes, opens and closes the log, and asks what was seen.
#ifndef RFINJECT_COLLECTOR_CUPTI_LAUNCH_TAP_H_
#define RFINJECT_COLLECTOR_CUPTI_LAUNCH_TAP_H_

#include <atomic>
#include <cstdint>
#include <optional>

#include "collector/cupti/api.h"
#include "collector/cupti/captured_graphs.h"
#include "collector/cupti/contexts.h"
#include "collector/cupti/device_memory.h"
#include "collector/cupti/launch_call.h"
#include "collector/cupti/launch_keys.h"
#include "collector/cupti/launch_log.h"
#include "collector/cupti/operator_calls.h"
#include "collector/cupti/subscription.h"
#include "collector/recorder.h"

namespace rfinject::cupti {

class LaunchTap {
 public:
  // Events that are rare, and concern more than a launch.
  class Listener {
   public:
    // Called on the thread that destroys the context, before it is gone.
    virtual void OnContextDestroyed(CUcontext context) noexcept = 0;
    // Called in a forked child, before it has other threads. The tap is closed already, since CUDA does not work
    // there.
    virtual void OnForkedChild() noexcept = 0;

   protected:
    ~Listener() = default;
  };

  // The arguments must outlive the object, which is never destroyed: CUPTI may call for as long as the process lives.
  // `api` may be filled later, but before Subscribe.
  LaunchTap(const Api& api, Contexts& contexts, LaunchKeys& keys, OperatorCalls& operators, Recorder& recorder,
            Listener& listener) noexcept
      : api_(api),
        contexts_(contexts),
        keys_(keys),
        operators_(operators),
        recorder_(recorder),
        listener_(listener) {}

  // --- For the thread that ends the steps.

  // Asks CUPTI to call us from now on: what is captured into graphs is noted. Returns false when that failed and was
  // reported: the tap must then be closed.
  bool Subscribe();
  // Records launches from now on, too. `context` and its device are those in which steps are ended.
  void Begin(CUcontext context, uint32_t device);
  // Makes the callback do nothing any more. The subscription stays: giving it up would let another tool finalise
  // CUPTI under the program. Any thread may call this.
  void Close() noexcept;
  // Ends the subscription of a tap that is closed, in a process that goes on without us.
  void Unsubscribe() noexcept;

  const Subscription& subscription() const noexcept { return subscription_; }

  // The log of launches in any context, while kernels are timed.
  LaunchLog& log() noexcept { return log_; }

  // Whether a stream is captured into a graph at this moment: what waits for the GPU would spoil the capture.
  bool capturing() const noexcept { return captures_.load(std::memory_order_acquire) > 0; }
  // Any thread may do what a capture would be spoiled by between BeginUnsafe, which says whether it may, and
  // EndUnsafe: a capture that begins meanwhile waits for its end, for a bounded time.
  bool BeginUnsafe() noexcept;
  void EndUnsafe() noexcept { unsafe_.store(false, std::memory_order_seq_cst); }
  // What was captured.
  CapturedGraphs& graphs() noexcept { return graphs_; }
  const CapturedGraphs& graphs() const noexcept { return graphs_; }
  // May be called after Begin. See DeviceMemory::OnStepEnd.
  DeviceMemory& memory() noexcept { return *memory_; }

 private:
  static void CUPTIAPI OnCupti(void* user, CUpti_CallbackDomain domain, CUpti_CallbackId cbid, const void* data);
  static void AfterForkInChild() noexcept;
  bool Enable();
  void OnDriverCall(CUpti_CallbackId cbid, const CUpti_CallbackData& call) noexcept;
  static void OnWait(const CUpti_CallbackData& data) noexcept;
  // A launch that was decoded, and what is known of it.
  struct Call {
    LaunchCall call;
    CallKind kind{};
    const char* name = nullptr;
    CountedContext* context = nullptr;
    uint32_t key = LaunchKeys::kNoKey;
    uint32_t compiled = 0;  // CompiledPlace::work
    const LaunchIdentity* identity = &LaunchKeys::kNothing;
  };
  void OnLaunch(CUpti_CallbackId cbid, const CUpti_CallbackData& data) noexcept;
  void RecordLaunch(Call* call, uint32_t correlation_id) noexcept;
  void OnExit(const CUpti_CallbackData& data) noexcept;
  bool Decode(CUpti_CallbackId cbid, const CUpti_CallbackData& data, Call* call) noexcept;
  uint32_t RecordGraph(Call* call) noexcept;
  void RecordNumber(uint32_t graph) noexcept;
  void BeginCaptured(Call* call) noexcept;
  void EndCaptured(bool done, uint32_t correlation_id) noexcept;
  void RecordLate(uint32_t key, uint32_t correlation_id) noexcept;
  void RecordLateGraph(const void* executable) noexcept;
  void OnGraphResource(CUpti_CallbackId cbid, const CUpti_ResourceData& data) noexcept;
  void OnNodeCreated(const CUpti_GraphData& data) noexcept;
  uint64_t NodeId(CUgraphNode node) const noexcept;
  void OnCaptureCall(CUpti_CallbackId cbid, const CUpti_CallbackData& data) noexcept;

  const Api& api_;
  Contexts& contexts_;
  LaunchKeys& keys_;
  OperatorCalls& operators_;
  Recorder& recorder_;
  Listener& listener_;

  // Set by Subscribe, before the first callback.
  Subscription subscription_;
  // Set by Begin, and read where `recording_` was seen.
  uint32_t device_ = 0;
  std::optional<DeviceMemory> memory_;
  std::atomic<bool> recording_{false};

  CapturedGraphs graphs_{keys_, recorder_};
  LaunchLog log_;
  std::atomic<bool> numbers_nodes_{false};  // CUPTI has told of the node that a captured launch became
  std::atomic<int> captures_{0};   // streams that are captured at this moment, of those whose beginning we saw
  std::atomic<int> beginning_{0};  // calls that may begin a capture
  std::atomic<bool> unsafe_{false};
};

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_LAUNCH_TAP_H_
