#include "cli/reader/schema.h"

namespace rfinject::cli {
namespace {

// proto/rfinject/v1/trace.proto, message by message. schema_test compares every line with protobuf's descriptors.
constexpr std::string_view kSourceNames[] = {"SOURCE_UNSPECIFIED", "SOURCE_MEASURED", "SOURCE_ESTIMATED",
                                             "SOURCE_IMPORTED", "SOURCE_NONE"};
constexpr std::string_view kPhaseNames[] = {"PHASE_OTHER", "PHASE_FORWARD",       "PHASE_BACKWARD", "PHASE_OPTIMIZER",
                                            "PHASE_DATA",  "PHASE_COMMUNICATION", "PHASE_RECOMPUTE"};
constexpr std::string_view kTierNames[] = {"TIER_UNSPECIFIED",  "TIER_A_CURRENT_NODE", "TIER_B_BACKWARD_SCOPE",
                                           "TIER_C_CALL_SLOTS", "TIER_D_NAMES_ONLY",   "TIER_E_LIBTORCH",
                                           "TIER_F_NO_TORCH"};
constexpr std::string_view kSeverityNames[] = {"SEVERITY_INFO", "SEVERITY_WARNING", "SEVERITY_ERROR"};
constexpr SchemaField kProcess[] = {
    {1, "rfinject_version", FieldKind::kText, {}, {}},
    {2, "host", FieldKind::kText, {}, {}},
    {3, "pid", FieldKind::kUnsigned, {}, {}},
    {4, "argv", FieldKind::kText, {}, {}},
    {5, "start_unix_ns", FieldKind::kSigned, {}, {}},
    {6, "python_version", FieldKind::kText, {}, {}},
    {7, "python_executable", FieldKind::kText, {}, {}},
    {8, "torch_version", FieldKind::kText, {}, {}},
    {9, "torchvision_version", FieldKind::kText, {}, {}},
    {10, "cuda_version", FieldKind::kText, {}, {}},
    {11, "cudnn_version", FieldKind::kText, {}, {}},
    {12, "driver_version", FieldKind::kText, {}, {}},
    {13, "cupti_version", FieldKind::kText, {}, {}},
    {14, "cupti_path", FieldKind::kText, {}, {}},
    {15, "rank", FieldKind::kUnsigned, {}, {}},
    {16, "local_rank", FieldKind::kUnsigned, {}, {}},
    {17, "world_size", FieldKind::kUnsigned, {}, {}},
    {18, "job_id", FieldKind::kText, {}, {}},
    {19, "os", FieldKind::kText, {}, {}},
    {20, "cpu", FieldKind::kText, {}, {}},
    {21, "cpus", FieldKind::kUnsigned, {}, {}},
    {22, "memory_bytes", FieldKind::kUnsigned, {}, {}},
    {23, "tier_reason", FieldKind::kText, {}, {}},
};
constexpr SchemaField kDevice[] = {
    {1, "index", FieldKind::kUnsigned, {}, {}},
    {2, "name", FieldKind::kText, {}, {}},
    {3, "chip", FieldKind::kText, {}, {}},
    {4, "cc_major", FieldKind::kUnsigned, {}, {}},
    {5, "cc_minor", FieldKind::kUnsigned, {}, {}},
    {6, "sm_count", FieldKind::kUnsigned, {}, {}},
    {7, "sm_clock_khz", FieldKind::kUnsigned, {}, {}},
    {8, "memory_clock_khz", FieldKind::kUnsigned, {}, {}},
    {9, "memory_bus_bits", FieldKind::kUnsigned, {}, {}},
    {10, "memory_bytes", FieldKind::kUnsigned, {}, {}},
    {11, "l2_bytes", FieldKind::kUnsigned, {}, {}},
    {12, "uuid", FieldKind::kText, {}, {}},
    {13, "mig", FieldKind::kBool, {}, {}},
};
constexpr SchemaField kPolicy[] = {
    {1, "matmul_tf32", FieldKind::kUnsigned, {}, {}},     {2, "cudnn_tf32", FieldKind::kUnsigned, {}, {}},
    {3, "cudnn_benchmark", FieldKind::kUnsigned, {}, {}}, {4, "cudnn_deterministic", FieldKind::kUnsigned, {}, {}},
    {5, "autocast_dtype", FieldKind::kText, {}, {}},      {6, "grad_enabled_steps", FieldKind::kUnsigned, {}, {}},
};
constexpr SchemaField kMerged[] = {
    {1, "gpu", FieldKind::kText, {}, {}},
    {2, "root", FieldKind::kText, {}, {}},
    {3, "model", FieldKind::kUnsigned, {}, {}},
    {4, "process", FieldKind::kMessage, kProcess, {}},
    {5, "device", FieldKind::kMessage, kDevice, {}},
    {6, "unfinished", FieldKind::kUnsigned, {}, {}},
    {7, "parameters", FieldKind::kUnsigned, {}, {}},
    {8, "training", FieldKind::kBool, {}, {}},
};
constexpr SchemaField kRun[] = {
    {1, "id", FieldKind::kUnsigned, {}, {}},          {2, "source", FieldKind::kEnum, {}, kSourceNames},
    {3, "tier", FieldKind::kEnum, {}, kTierNames},    {4, "process", FieldKind::kMessage, kProcess, {}},
    {5, "device", FieldKind::kMessage, kDevice, {}},  {6, "policy", FieldKind::kMessage, kPolicy, {}},
    {7, "processes", FieldKind::kUnsigned, {}, {}},   {8, "rank", FieldKind::kUnsigned, {}, {}},
    {9, "batch_size", FieldKind::kUnsigned, {}, {}},  {10, "estimated_gpu", FieldKind::kText, {}, {}},
    {11, "collector", FieldKind::kText, {}, {}},      {12, "collector_version", FieldKind::kText, {}, {}},
    {13, "merged", FieldKind::kMessage, kMerged, {}},
};
constexpr SchemaField kName[] = {
    {1, "id", FieldKind::kUnsigned, {}, {}},
    {2, "text", FieldKind::kText, {}, {}},
};
constexpr SchemaField kModel[] = {
    {1, "id", FieldKind::kUnsigned, {}, {}},
    {2, "class_name", FieldKind::kText, {}, {}},
    {3, "parameters", FieldKind::kUnsigned, {}, {}},
    {4, "parameter_bytes", FieldKind::kUnsigned, {}, {}},
    {5, "trainable_parameters", FieldKind::kUnsigned, {}, {}},
};
constexpr SchemaField kLayer[] = {
    {1, "id", FieldKind::kUnsigned, {}, {}},         {2, "model", FieldKind::kUnsigned, {}, {}},
    {3, "path", FieldKind::kText, {}, {}},           {4, "class_name", FieldKind::kText, {}, {}},
    {5, "parameters", FieldKind::kUnsigned, {}, {}}, {6, "parameter_bytes", FieldKind::kUnsigned, {}, {}},
    {7, "input_shape", FieldKind::kText, {}, {}},    {8, "output_shape", FieldKind::kText, {}, {}},
    {9, "parent", FieldKind::kUnsigned, {}, {}},     {10, "training", FieldKind::kBool, {}, {}},
    {11, "order", FieldKind::kUnsigned, {}, {}},
};
constexpr SchemaField kMetric[] = {
    {1, "id", FieldKind::kUnsigned, {}, {}},
    {2, "name", FieldKind::kText, {}, {}},
    {3, "unit", FieldKind::kText, {}, {}},
    {4, "scale", FieldKind::kDouble, {}, {}},
};
constexpr SchemaField kLaunchKey[] = {
    {1, "id", FieldKind::kUnsigned, {}, {}},
    {2, "kernel", FieldKind::kUnsigned, {}, {}},
    {3, "op", FieldKind::kUnsigned, {}, {}},
    {4, "layer", FieldKind::kUnsigned, {}, {}},
    {5, "phase", FieldKind::kEnum, {}, kPhaseNames},
    {6, "signature", FieldKind::kUnsigned, {}, {}},
    {7, "grid", FieldKind::kUnsigned, {}, {}},
    {8, "block", FieldKind::kUnsigned, {}, {}},
    {9, "dynamic_shared_bytes", FieldKind::kUnsigned, {}, {}},
    {10, "device", FieldKind::kUnsigned, {}, {}},
    {11, "run", FieldKind::kUnsigned, {}, {}},
    {12, "node", FieldKind::kUnsigned, {}, {}},
};
constexpr SchemaField kMetricStats[] = {
    {1, "metric", FieldKind::kUnsigned, {}, {}},      {2, "n", FieldKind::kUnsigned, {}, {}},
    {3, "sum", FieldKind::kUnsigned, {}, {}},         {4, "sum_high", FieldKind::kUnsigned, {}, {}},
    {5, "sum_squares", FieldKind::kUnsigned, {}, {}}, {6, "sum_squares_high", FieldKind::kUnsigned, {}, {}},
    {7, "min", FieldKind::kUnsigned, {}, {}},         {8, "max", FieldKind::kUnsigned, {}, {}},
    {9, "shared_sums", FieldKind::kUnsigned, {}, {}},
};
constexpr SchemaField kKeyStats[] = {
    {1, "key", FieldKind::kUnsigned, {}, {}},
    {2, "launches", FieldKind::kUnsigned, {}, {}},
    {3, "metric", FieldKind::kMessage, kMetricStats, {}},
};
constexpr SchemaField kStep[] = {
    {1, "index", FieldKind::kUnsigned, {}, {}},        {2, "start_unix_ns", FieldKind::kSigned, {}, {}},
    {3, "duration_ns", FieldKind::kUnsigned, {}, {}},  {4, "run", FieldKind::kUnsigned, {}, {}},
    {5, "measured", FieldKind::kBool, {}, {}},         {6, "armed_group", FieldKind::kUnsigned, {}, {}},
    {7, "memory_bytes", FieldKind::kUnsigned, {}, {}}, {8, "memory_peak_bytes", FieldKind::kUnsigned, {}, {}},
    {9, "samples", FieldKind::kUnsigned, {}, {}},
};
constexpr SchemaField kDiagnostic[] = {
    {1, "severity", FieldKind::kEnum, {}, kSeverityNames},
    {2, "id", FieldKind::kText, {}, {}},
    {3, "text", FieldKind::kText, {}, {}},
    {4, "remedy", FieldKind::kText, {}, {}},
    {5, "unix_ns", FieldKind::kSigned, {}, {}},
    {6, "run", FieldKind::kUnsigned, {}, {}},
    {7, "count", FieldKind::kUnsigned, {}, {}},
};
constexpr SchemaField kDrop[] = {
    {1, "what", FieldKind::kText, {}, {}},
    {2, "count", FieldKind::kUnsigned, {}, {}},
    {3, "run", FieldKind::kUnsigned, {}, {}},
};
constexpr SchemaField kRunSteps[] = {
    {1, "run", FieldKind::kUnsigned, {}, {}},
    {2, "steps", FieldKind::kUnsigned, {}, {}},
    {3, "samples", FieldKind::kUnsigned, {}, {}},
    {4, "duration_ns", FieldKind::kMessage, kMetricStats, {}},
    {5, "armed", FieldKind::kUnsigned, {}, {}},
    {6, "memory_peak_bytes", FieldKind::kUnsigned, {}, {}},
    {7, "pm_dram_bytes", FieldKind::kMessage, kMetricStats, {}},
    {8, "pm_duration_ns", FieldKind::kMessage, kMetricStats, {}},
    {9, "pm_tensor_active_ns", FieldKind::kMessage, kMetricStats, {}},
};
constexpr SchemaField kPmWindow[] = {
    {1, "run", FieldKind::kUnsigned, {}, {}},
    {2, "step", FieldKind::kUnsigned, {}, {}},
    {3, "start_unix_ns", FieldKind::kSigned, {}, {}},
    {4, "duration_ns", FieldKind::kUnsigned, {}, {}},
    {5, "samples", FieldKind::kUnsigned, {}, {}},
    {6, "dram_read_bytes", FieldKind::kUnsigned, {}, {}},
    {7, "dram_write_bytes", FieldKind::kUnsigned, {}, {}},
    {8, "has_tensor", FieldKind::kBool, {}, {}},
    {9, "tensor_active_ns", FieldKind::kUnsigned, {}, {}},
    {10, "bin_ns", FieldKind::kUnsigned, {}, {}},
    {11, "bin_dram_bytes", FieldKind::kUnsigned, {}, {}},
    {12, "bin_tensor_permille", FieldKind::kUnsigned, {}, {}},
};
constexpr SchemaField kStepStats[] = {
    {1, "run", FieldKind::kMessage, kRunSteps, {}},
};
constexpr SchemaField kEnd[] = {
    {1, "reason", FieldKind::kText, {}, {}},
    {2, "unix_ns", FieldKind::kSigned, {}, {}},
};
constexpr SchemaField kChunk[] = {
    {1, "run", FieldKind::kMessage, kRun, {}},
    {2, "name", FieldKind::kMessage, kName, {}},
    {3, "model", FieldKind::kMessage, kModel, {}},
    {4, "layer", FieldKind::kMessage, kLayer, {}},
    {5, "metric", FieldKind::kMessage, kMetric, {}},
    {6, "key", FieldKind::kMessage, kLaunchKey, {}},
    {7, "stats", FieldKind::kMessage, kKeyStats, {}},
    {8, "step", FieldKind::kMessage, kStep, {}},
    {9, "diagnostic", FieldKind::kMessage, kDiagnostic, {}},
    {10, "drop", FieldKind::kMessage, kDrop, {}},
    {11, "step_stats", FieldKind::kMessage, kStepStats, {}},
    {12, "end", FieldKind::kMessage, kEnd, {}},
    {13, "pm_window", FieldKind::kMessage, kPmWindow, {}},
};
}  // namespace

std::span<const SchemaField> ChunkSchema() { return kChunk; }

}  // namespace rfinject::cli
