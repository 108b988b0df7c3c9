// File: source.h
//
// A Source turns what the GPU (or a model of it) does into LaunchRecords. There is one per process, chosen by
// settings and by what the machine offers: the estimator, the hardware source (CUPTI), or none.
#ifndef RFINJECT_COLLECTOR_SOURCE_H_
#define RFINJECT_COLLECTOR_SOURCE_H_

#include <cstdint>

#include "collector/recorder.h"
#include "collector/run_facts.h"
#include "collector/settings.h"

namespace rfinject {

struct CompiledWork;  // compiled_code.h
struct OpCall;        // op_call.h

class Source {
 public:
  virtual ~Source() = default;

  // Whether OnOp should ever be called. The injector then finds out how to observe ATen operators with their
  // operands.
  virtual bool wants_ops() const noexcept { return false; }
  // Whether it should be called from the beginning of the step that begins. Operators that are observed cost the host
  // some microseconds each, all others nothing. Asked at first, and whenever a step has ended.
  virtual bool wants_ops_now() const noexcept { return wants_ops(); }
  // Whether it is ever called for a slice of a step. A slice also begins where operator_slices.h says so, and ends
  // where WantsOpsBehind is false. That is asked when a thread, between two operators, has got from one place of the
  // program (a module's call, an autograd node, an optimizer's step) to another.
  virtual bool wants_slices_of_ops() const noexcept { return false; }
  virtual bool WantsOpsBehind() noexcept { return true; }
  // How many kernels the calling thread has launched or captured, kept there as long as the thread lives; not all of
  // them need be counted while no operators are wanted.
  virtual const uint64_t* LaunchesOfThread() const noexcept {
    static constinit uint64_t none = 0;
    return &none;
  }
  // Whether OnOp should also be called outside of the window of --skip and --steps at this moment: what is captured
  // into a CUDA graph now may be launched in the window. Outside of the window it is asked before each operator that
  // runs inside no other.
  virtual bool wants_ops_outside_window() const noexcept { return false; }
  // Takes one finished ATen operator, on the thread that ran it. `site` is where it ran. Returns whether the GPU has
  // work to do for it, which is then counted.
  virtual bool OnOp(const OpCall& /*call*/, const Site& /*site*/) noexcept { return false; }

  // Tells that an operator has ended by an exception, on the thread that ran it.
  virtual void OnOpFailed() noexcept {}

  // Whether compiled code of the program's is to be read (compiled_code.h).
  virtual bool wants_compiled_code() const noexcept { return false; }
  // Tells what a call of a compiled kernel does. Returns a number for it, from 1; 0 where it cannot be kept. A cold
  // call.
  virtual uint32_t DefineCompiledWork(const CompiledWork& /*work*/) noexcept { return 0; }

  // Takes torch's precision policy and device facts, whenever they were read anew (at first and after each step).
  virtual void OnPolicy(const PolicyFacts& /*policy*/) noexcept {}

  // Tells that the program calls its first module, on the thread that does. Called once, before any of its steps
  // ends.
  virtual void OnFirstCall() noexcept {}

  // Asks whether a call of an optimizer's step has really stepped. It has not where it was captured into a CUDA
  // graph: the step goes on until the graph is launched, and the source then ends it (step_end.h).
  virtual bool HasStepped() noexcept { return true; }

  // Tells that a profiler of the program's is made, on the thread that makes it. What the two cannot have at the same
  // time is given up before this returns, for a while.
  virtual void OnProfilerComes() noexcept {}

  // Tells that a step has ended, on the thread that ran the optimizer, before Recorder::EndStep.
  virtual void OnStepEnd(uint64_t /*step*/) noexcept {}

  // Called when the process ends or the source is switched off. Nothing is recorded afterwards.
  virtual void Stop() noexcept {}

  // Gives back, after OnProfilerComes and Stop, what belongs to the program in a process that goes on: subscriptions
  // and sessions. It may be called where MayGiveBack said yes a moment ago.
  virtual bool MayGiveBack() const noexcept { return true; }
  virtual void GiveBack() noexcept {}
};

// Makes the source for these settings. Returns nullptr where nothing can be measured, and gives the reason to
// recorder.ReportDiagnostic. The process owns the source and never destroys it.
Source* MakeSource(const Settings& settings, Recorder& recorder) noexcept;

// Makes the estimator (estimate/) for settings.estimate, a row of gpus.csv without regard to case, and tells the
// recorder what is estimated (source, GPU, device facts). Returns nullptr when the table has no such row, with an
// error diagnostic that names the nearest ones, or when memory ran out. The process owns it, and never destroys it.
Source* MakeEstimator(const Settings& settings, Recorder& recorder) noexcept;

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_SOURCE_H_
