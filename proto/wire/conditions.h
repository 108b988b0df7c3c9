// File: conditions.h
//
// The conditions that can keep us from measuring on a GPU: one table of condition, message and remedy. The hardware
// source writes a row into the trace as a diagnostic (and to stderr, once); `rfinject doctor` prints the same rows
// for what shows without a CUDA process (cli/cmd/doctor_gpu.h). No other place has these sentences.
#ifndef RFINJECT_PROTO_WIRE_CONDITIONS_H_
#define RFINJECT_PROTO_WIRE_CONDITIONS_H_

#include <array>
#include <cstdint>
#include <string_view>

namespace rfinject {

// What is lost.
enum class Loss : uint8_t {
  kCounters,  // no FLOP and bytes; times remain
  kTimes,     // no times; counters remain
  kAll,       // neither
};

// The end of the sentence that says what is lost.
constexpr std::string_view LossText(Loss loss) {
  return loss == Loss::kCounters ? "; FLOP and bytes are not measured"
         : loss == Loss::kTimes  ? "; kernel times are not measured"
                                 : "; nothing is measured on the GPU";
}

struct Condition {
  std::string_view id;       // of the diagnostic, stable
  std::string_view message;  // what is the case
  std::string_view remedy;   // the line that mends it; empty: nothing does
  Loss loss;
};

enum class ConditionId : uint8_t {
  kPermission,
  kBusy,
  kZeros,
  kSubscriber,
  kNoCupti,
  kCuptiBroken,
  kCuptiTooOld,
  kNoPerfworks,
  kUnknownChip,
  kMig,
  kVgpu,
  kConfidential,
  kMps,
  kWsl,
  kUnsupported,
  kMemory,
  kLegacyInUse,
  kSeveralRanks,
  kGraphs,
  kStalled,
  kMismatch,
  kActivityTaken,
  kContextGone,
  kFailure,
  kCount,
};

inline constexpr std::array<Condition, static_cast<size_t>(ConditionId::kCount)> kConditions = {{
    {"counters-permission", "the driver gives performance counters to administrators only (ERR_NVGPUCTRPERM)",
     "on the host: options nvidia NVreg_RestrictProfilingToAdminUsers=0 in /etc/modprobe.d, then reboot; in a "
     "container: --cap-add=SYS_ADMIN",
     Loss::kCounters},
    {"counters-busy", "another profiler or DCGM holds the performance counters",
     "dcgmi profile --pause on the host, and dcgmi profile --resume afterwards", Loss::kCounters},
    {"counters-zero",
     "the performance counters stay zero while kernels run: another profiler or DCGM holds them, or the "
     "driver has had an error (Xid)",
     "dcgmi profile --pause on the host; dmesg names errors of the driver", Loss::kCounters},
    {"cupti-subscriber", "another tool in this process holds CUPTI (torch.profiler, nsys, ncu or a debugger)",
     "run without that tool", Loss::kAll},
    {"cupti-missing", "no libcupti of this program's CUDA was found", "pip install nvidia-cuda-cupti-cu12 (or -cu13)",
     Loss::kAll},
    {"cupti-broken", "libcupti does not work with this driver",
     "install the CUPTI that belongs to the program's CUDA", Loss::kAll},
    {"cupti-too-old", "this CUPTI has no profiler that counts kernels", "use a torch built for CUDA 11.7 or later",
     Loss::kCounters},
    {"perfworks-missing", "libnvperf_host.so was not found beside libcupti, or is of another version",
     "install the complete CUPTI package of the program's CUDA", Loss::kCounters},
    {"chip-unknown", "this CUPTI is older than the GPU", "use a torch built for a newer CUDA", Loss::kCounters},
    {"mig", "CUPTI cannot profile this MIG instance", "use a whole GPU, or a driver that supports profiling of MIG",
     Loss::kCounters},
    {"vgpu", "profiling is switched off for this virtual GPU", "enable_profiling=1 in the vGPU's plugin parameters",
     Loss::kCounters},
    {"confidential-computing", "the GPU runs in confidential-computing mode", "CC devtools mode, set by the host",
     Loss::kCounters},
    {"mps", "the process runs under MPS, where counters cannot be told apart", "stop nvidia-cuda-mps-control",
     Loss::kCounters},
    {"wsl", "the Windows driver does not give counters to WSL",
     "NVIDIA control panel: allow access to the GPU performance counters to all users", Loss::kCounters},
    {"counters-unsupported", "CUPTI does not support counters on this GPU", "", Loss::kCounters},
    {"gpu-memory", "too little memory for the profiler's buffers", "leave some GPU memory free", Loss::kCounters},
    {"legacy-profiler", "the program uses CUPTI's old event or metric API", "run without it", Loss::kCounters},
    {"several-ranks",
     "counters kernel by kernel could block a job of several ranks in communication kernels; times are still taken",
     "RFINJECT_MODE=range forces them", Loss::kCounters},
    {"cuda-graphs", "CUDA graphs cannot be counted kernel by kernel without replaying them",
     "run once without CUDA graphs (torch.compile: mode=\"default\")", Loss::kCounters},
    {"stalled", "a step with counters made no progress; nothing is armed any more", "RFINJECT_MODE=times",
     Loss::kCounters},
    {"ranges-mismatch", "a step's ranges did not match its launches; the step was thrown away", "", Loss::kCounters},
    {"activity-taken", "another tool took over CUPTI's activity records", "run without torch.profiler", Loss::kTimes},
    {"context-gone", "the CUDA context was destroyed", "", Loss::kAll},
    {"cupti-failure", "CUPTI failed", "", Loss::kCounters},
}};

inline constexpr const Condition& GetCondition(ConditionId id) { return kConditions[static_cast<size_t>(id)]; }

}  // namespace rfinject

#endif  // RFINJECT_PROTO_WIRE_CONDITIONS_H_
