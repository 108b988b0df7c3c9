// File: symbols.h
//
// The functions of libtorch that we call, found by their mangled names in the libtorch that the process has loaded.
#ifndef RFINJECT_INJECTOR_TORCH_SYMBOLS_H_
#define RFINJECT_INJECTOR_TORCH_SYMBOLS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "injector/torch/abi.h"

namespace rfinject {

// Whether autocast's wrapper would run for the calling thread's next operator; it would not inside such a wrapper.
// at::autocast::is_autocast_enabled(c10::DeviceType), before torch 2.4 is_cpu_enabled and is_enabled. They may be
// null; then nothing counts as missing.
struct AutocastFunctions {
  bool (*of_device)(int8_t) = nullptr;
  bool (*cpu)() = nullptr;
  bool (*cuda)() = nullptr;
};

struct TorchSymbols {
  // at::RecordFunction. All six are there in every release that we know.
  uint64_t (*add_global_callback)(abi::RecordFunctionCallback) = nullptr;
  uint64_t (*add_thread_local_callback)(abi::RecordFunctionCallback) = nullptr;
  void (*remove_callback)(uint64_t) = nullptr;
  const char* (*record_name)(const abi::RecordFunction*) = nullptr;
  size_t (*record_input_count)(const abi::RecordFunction*) = nullptr;   // arguments of the operator's schema
  size_t (*record_output_count)(const abi::RecordFunction*) = nullptr;  // returns of the operator's schema

  // at::sequence_number::peek and at::RecordFunction::currentThreadId.
  uint64_t (*peek)() = nullptr;
  uint64_t (*thread_id)() = nullptr;

  // torch::autograd::get_current_node (torch 2.0+); without it torch::autograd::Node::assign_parent. At most one is
  // set.
  abi::NodeReturn (*current_node)() = nullptr;
  void (*assign_parent)(void* node) = nullptr;
  // torch::autograd::get_current_graph_task_exec_info: an address that is not null inside the engine's loop.
  const void* (*engine_task)() = nullptr;
  // c10::GradMode::is_enabled.
  bool (*grad_enabled)() = nullptr;
  // torch::profiler::impl::profilerEnabled, of the calling thread. It may be null; then nothing counts as missing.
  bool (*profiler_enabled)() = nullptr;
  AutocastFunctions autocast;
  // c10::UndefinedTensorImpl::_singleton.
  const void* undefined_tensor = nullptr;

  // Handles of the libraries, for other look-ups.
  void* torch = nullptr;
  void* c10 = nullptr;

  std::string path;     // of libtorch_cpu.so
  std::string missing;  // names that were not found, comma separated

  bool has_record_function() const {
    return add_global_callback != nullptr && add_thread_local_callback != nullptr && remove_callback != nullptr &&
           record_name != nullptr;
  }
  // Whether calibration has all functions that it calls.
  bool can_calibrate() const {
    return has_record_function() && peek != nullptr && thread_id != nullptr && record_input_count != nullptr &&
           record_output_count != nullptr;
  }
};

// A handle of the library of the process whose file's name begins with `prefix` ("libc10.so", which Debian calls
// libc10.so.1.13), and its path where `path` is not null; null when there is none. The handle stays open, so that the
// library cannot go away while our callbacks are in it.
void* OpenLoaded(const char* prefix, std::string* path);

// False when no libtorch_cpu is loaded. libtorch is loaded with RTLD_LOCAL, so that RTLD_DEFAULT would find nothing:
// the library is looked for by name among those that the process has mapped.
bool FindTorchSymbols(TorchSymbols* symbols);

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_TORCH_SYMBOLS_H_
