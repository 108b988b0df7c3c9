// File: source.h
//
// A Source turns what the GPU (or a model of it) does into LaunchRecords. There is one per process, chosen by
// settings and by what the machine offers: the estimator, the hardware source (CUPTI), or none.
#ifndef RFINJECT_COLLECTOR_SOURCE_H_
#define RFINJECT_COLLECTOR_SOURCE_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "collector/recorder.h"
#include "collector/run_facts.h"
#include "collector/settings.h"

namespace rfinject {

struct OpCall;  // op_call.h

class Source {
 public:
  virtual ~Source() = default;

  // Whether OnOp should be called. The injector then observes every ATen operator with its operands, which costs
  // the host about a microsecond an operator.
  virtual bool wants_ops() const noexcept { return false; }
  // Whether it should also be called outside of the window of --skip and --steps at this moment: what is captured
  // into a CUDA graph now may be launched in the window. Asked there before each operator that is in no other.
  virtual bool wants_ops_outside_window() const noexcept { return false; }
  // One finished ATen operator, on the thread that ran it. Site is where it ran.
  virtual void OnOp(const OpCall& call, const Site& site) noexcept {
    (void)call;
    (void)site;
  }

  // Torch's precision policy and device facts, whenever they were read anew (at first and after each step).
  virtual void OnPolicy(const PolicyFacts& policy) noexcept { (void)policy; }

  // An optimizer has stepped. False: only into a CUDA graph, which does so when it is launched, and the source says
  // so then (step_end.h); until then the step goes on.
  virtual bool HasStepped() noexcept { return true; }

  // A step has ended (called before Recorder::EndStep) on the thread that ran the optimizer.
  virtual void OnStepEnd(uint64_t step) noexcept { (void)step; }

  // The process ends or the source is switched off. Nothing is recorded afterwards.
  virtual void Stop() noexcept {}
};

// The source for these settings, or nullptr where nothing can be measured; why goes to recorder.ReportDiagnostic.
// Owned by the process, never destroyed.
Source* MakeSource(const Settings& settings, Recorder& recorder) noexcept;

// The estimator for settings.estimate; nullptr where there is no such GPU, with a diagnostic. Defined in estimate/.
Source* MakeEstimator(const Settings& settings, Recorder& recorder) noexcept;

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_SOURCE_H_
