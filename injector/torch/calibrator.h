// File: calibrator.h
//
// Finds fields in torch's objects by elimination. A driver tells what it is about to do, in lines of words, and does
// it; RecordFunction callbacks look at what torch then has in memory. There are two drivers: a Python script
// (python_calibration.cc) and calls of libtorch's C++ functions (native_calibration.cc).
//
//   expect-sequence, expect-no-sequence    the next operator has the thread's next sequence number, or none
//   node OBJECT SEQUENCE CLASS             the Python object OBJECT wraps a node that was born with that number
//   native-node NODE SEQUENCE CLASS        NODE is the address of a node that was born with that number
//   accumulate OBJECT IMPL                 the Python object OBJECT wraps the AccumulateGrad of the tensor IMPL
//   backward SEQUENCE                      the next BACKWARD scope is that of the node with that number
//   tensor IMPL DTYPE META DATA OFFSET NUMEL RANK SIZE… STRIDE…
//                                          DATA is the storage's, OFFSET the elements between it and the tensor's
//   zeros IMPL                             a tensor of zeros that lie nowhere
//   expect OPERATOR INPUT… [> OUTPUT…]     its arguments: T123, I-3, D2.5, B1, N, L0,2 (integers), M123,456 (tensors)
//   done
#ifndef RFINJECT_INJECTOR_TORCH_CALIBRATOR_H_
#define RFINJECT_INJECTOR_TORCH_CALIBRATOR_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "injector/torch/abi.h"
#include "injector/torch/calibration.h"
#include "injector/torch/layouts.h"
#include "injector/torch/symbols.h"

namespace rfinject {

// Takes what the driver tells, and what the callbacks see of it. A process has one Calibrator at a time.
class Calibrator {
 public:
  explicit Calibrator(const TorchSymbols& symbols) : symbols_(symbols) {}

  void Tell(const char* line);
  void OnStart(const abi::RecordFunction& record, abi::RecordScope scope);
  void OnEnd(const abi::RecordFunction& record);
  // Writes what was found to `*result`. After a calibration that did not run to its end nothing is found, since what
  // was learned rests on too few objects; `error` (it may be empty) then says why.
  void Finish(bool operands, const char* error, CalibrationResult* result) const;

  uint64_t Peek() const { return symbols_.peek(); }
  // Tells that the driver failed, or that something could not be looked at: nothing that was learned is used.
  void Fail() { failed_ = true; }

 private:
  // Whether the object at `node` is a node of that class; then it is looked at.
  bool ObserveNode(uintptr_t node, uint64_t sequence, const char* class_name);
  void ObserveAccumulation(uintptr_t object, uint64_t tensor);
  void ObserveWrappedNode(uintptr_t object, uint64_t sequence, const char* class_name);
  // Looks for the place in a RecordFunction that leads to these values, where `fits` says that a place may. Returns 1
  // where they were found and understood, else 0.
  template <typename Fits>
  size_t ObserveValues(FieldSearch* search, uintptr_t record, std::span<const KnownValue> known, Fits fits);
  void FindLayouts(bool operands, CalibrationResult* result) const;

  const TorchSymbols& symbols_;
  bool done_ = false;
  bool failed_ = false;

  enum class SequenceExpected { kNothing, kPeek, kNone } sequence_expected_ = SequenceExpected::kNothing;
  uint64_t backward_expected_ = kNoBackward;
  static constexpr uint64_t kNoBackward = UINT64_MAX;

  FieldSearch node_sequence_{8, 96};
  FieldSearch node_thread_{8, 96};
  FieldSearch node_parameter_{8};
  size_t nodes_seen_ = 0;
  size_t nodes_named_ = 0;
  size_t nodes_told_ = 0;
  bool nodes_self_referring_ = true;  // word 1 is the object's own address: std::enable_shared_from_this

  FieldSearch record_sequence_{8, 320};
  FieldSearch record_thread_{8, 400};
  size_t backwards_told_ = 0;
  size_t backwards_seen_ = 0;

  struct Expectation {
    bool armed = false;
    char name[64] = {};
    std::vector<KnownValue> inputs, outputs;
  } expectation_;
  bool outputs_expected_ = false;
  size_t expected_met_ = 0;
  size_t expected_told_ = 0;
  bool values_good_ = true;
  FieldSearch record_inputs_{8, 400};
  FieldSearch record_outputs_{8, 400};
  size_t outputs_seen_ = 0;
  TensorSearch tensors_;
  ValueSearch values_;
};

// Installs the calibrator's callbacks, on the calling thread, for as long as it lives.
class CalibratorCallbacks {
 public:
  CalibratorCallbacks(Calibrator* calibrator, const TorchSymbols& symbols, bool operands);
  ~CalibratorCallbacks();
  CalibratorCallbacks(const CalibratorCallbacks&) = delete;
  CalibratorCallbacks& operator=(const CalibratorCallbacks&) = delete;

 private:
  const TorchSymbols& symbols_;
  uint64_t function_ = 0;
  uint64_t backward_ = 0;
};

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_TORCH_CALIBRATOR_H_
