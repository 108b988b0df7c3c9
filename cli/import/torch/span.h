// File: span.h
//
// What a recording of torch.profiler has many of: spans of the host's threads, calls of CUDA, and what the GPU did.
#ifndef RFINJECT_CLI_IMPORT_TORCH_SPAN_H_
#define RFINJECT_CLI_IMPORT_TORCH_SPAN_H_

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace rfinject::cli {

// Something that a thread of the host did, in ns of the file's clock.
struct TorchSpan {
  enum class Kind : uint8_t { kOperator, kAnnotation, kModule };
  static constexpr int64_t kNone = -1;
  int64_t start = 0, end = 0;
  int64_t sequence = kNone;  // of the autograd node that was or will be born in it
  uint64_t external_id = 0;  // 0: none
  uint32_t thread = 0;       // in TorchRecording::threads
  uint32_t name = 0;         // in TorchRecording::texts
  uint32_t operands = 0;     // in TorchRecording::operands; 0: not recorded
  Kind kind = Kind::kOperator;
};

// A call of CUDA's runtime or driver (or of HIP's).
struct TorchCall {
  int64_t start = 0, end = 0;
  uint64_t correlation = 0;
  uint32_t thread = 0, name = 0;
};

// What makes launches alike.
struct TorchLaunch {
  uint32_t name = 0;
  uint32_t device = 0, shared_bytes = 0;
  uint32_t module = 0;  // in TorchRecording::texts: the layer that a CUDA graph's node was captured in; 0: not said
  uint32_t group = 0;   // in TorchRecording::texts: the ranks that communicate, by their group's name; 0: not said
  std::array<uint32_t, 3> grid{}, block{};
  friend bool operator==(const TorchLaunch&, const TorchLaunch&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const TorchLaunch& key) {
    return H::combine(std::move(h), key.name, key.device, key.shared_bytes, key.module, key.group, key.grid,
                      key.block);
  }
};

// A kernel, a copy or a memory set.
struct TorchActivity {
  enum class Kind : uint8_t { kKernel, kCopy, kSet };
  int64_t start = 0, duration = 0;
  uint64_t correlation = 0, external_id = 0;  // 0: none
  uint32_t launch = 0;                        // in TorchRecording::launches
  uint32_t stream = 0;
  Kind kind = Kind::kKernel;
};

// A part of a recording, unpacked, in the order of the file: some 90 bytes an event.
struct TorchWindow {
  std::vector<TorchSpan> spans;
  std::vector<TorchCall> calls;
  std::vector<TorchActivity> activities;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_TORCH_SPAN_H_
