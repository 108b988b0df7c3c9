// File: execution_trace.h
//
// Reads what PyTorch's ExecutionTraceObserver writes (Chakra's JSON): every operator that the host called, in order
// and nested, with types, shapes and strides of what went in and came out, and no times.
#ifndef RFINJECT_CLI_IMPORT_ET_EXECUTION_TRACE_H_
#define RFINJECT_CLI_IMPORT_ET_EXECUTION_TRACE_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/import/torch/byte_stream.h"
#include "cli/import/torch/recording.h"

namespace rfinject::cli {

struct ExecutedCall {
  static constexpr uint32_t kNone = UINT32_MAX;
  uint64_t id = 0;               // ascending as calls began
  uint32_t parent = kNone;       // in ExecutionTrace::calls; itself an earlier one
  uint32_t name = 0;             // in ExecutionTrace::texts
  uint32_t operands = 0;         // in ExecutionTrace::operands, as TorchRecording has them
  bool is_operator = false;      // else a range that the program or the profiler named
  bool on_host = false;          // has tensors, and all lie in the host's memory
  bool crosses_devices = false;  // some lie there, and some on a GPU
};

struct ExecutionTrace {
  TextTable texts, operands;
  std::vector<ExecutedCall> calls;  // by id: each before what runs inside of it
  bool uses_gpu = false;            // some tensor lies on one
};

// Whether a file that begins like this may be one.
bool LooksLikeExecutionTrace(std::string_view beginning);

// Reads all of it. Memory is a few times the file's unpacked bytes, which may be 512 MiB. Fails with the offset where
// it is not JSON, or with what is missing.
absl::StatusOr<ExecutionTrace> ReadExecutionTrace(ByteStream& bytes);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_ET_EXECUTION_TRACE_H_
