// File: abi.h
//
// The few types of torch that cross a call of ours, as the Itanium C++ ABI passes them. None of torch's headers is
// compiled in; each of these was the same in every release from 1.13 to 2.15, and calibration exercises them all
// before anything relies on them.
#ifndef RFINJECT_INJECTOR_TORCH_ABI_H_
#define RFINJECT_INJECTOR_TORCH_ABI_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace rfinject::abi {

// at::RecordScope.
enum class RecordScope : uint8_t { kFunction = 0, kBackward = 1, kUser = 7 };
inline constexpr size_t kRecordScopes = 10;

// at::RecordFunction, never looked into except at calibrated offsets.
struct RecordFunction;

// std::unique_ptr<at::ObserverContext>: the destructor makes it be returned through a hidden pointer. We have no
// context, so it is always null.
struct NoContext {
  void* context = nullptr;
  ~NoContext() {}
};
static_assert(sizeof(NoContext) == 8 && !std::is_trivially_copyable_v<NoContext>);

using StartCallback = NoContext (*)(const RecordFunction&);
using EndCallback = void (*)(const RecordFunction&, void* context);

// at::RecordFunctionCallback, passed by value.
struct RecordFunctionCallback {
  StartCallback start = nullptr;
  EndCallback end = nullptr;
  double sampling_probability = 1.0;
  std::array<bool, kRecordScopes> scopes{};
  bool needs_inputs = false;
  bool needs_outputs = false;
  bool needs_ids = false;
};
static_assert(sizeof(RecordFunctionCallback) == 40 && std::is_trivially_copyable_v<RecordFunctionCallback>);

inline RecordFunctionCallback MakeCallback(RecordScope scope, StartCallback start, EndCallback end,
                                           bool operands = false) {
  RecordFunctionCallback callback;
  callback.start = start;
  callback.end = end;
  callback.scopes[static_cast<size_t>(scope)] = true;
  callback.needs_inputs = operands;
  callback.needs_outputs = operands;
  return callback;
}

// What torch::autograd::get_current_node returns: std::shared_ptr<Node> (two words) up to about torch 2.12,
// c10::intrusive_ptr<Node> (one word) later, under the same mangled name. Both are returned through a hidden pointer.
struct NodeReturn {
  void* node;
  void* second;
  ~NodeReturn() {}
};
static_assert(sizeof(NodeReturn) == 16 && !std::is_trivially_copyable_v<NodeReturn>);

}  // namespace rfinject::abi

#endif  // RFINJECT_INJECTOR_TORCH_ABI_H_
