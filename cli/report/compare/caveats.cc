#include "cli/report/compare/caveats.h"

#include "cli/report/facts/run_name.h"

namespace rfinject::cli {

std::vector<Caveat> CaveatsOf(const Run& before, std::string_view before_gpu, const Run& after,
                              std::string_view after_gpu) {
  std::vector<Caveat> caveats;
  const RunKey &a = before.key, &b = after.key;
  if (!SameNetwork(a, before.process_list, b, after.process_list)) caveats.push_back({Caveat::Of::kNetwork});
  if (before_gpu != after_gpu && !before_gpu.empty() && !after_gpu.empty()) {
    caveats.push_back({Caveat::Of::kGpu, 0, 0, std::string(before_gpu), std::string(after_gpu)});
  }
  // An import does not know its batch, its mode and its policy.
  const bool imported = a.source == SourceKind::kImported || b.source == SourceKind::kImported;
  if (a.source != b.source) {
    caveats.push_back({Caveat::Of::kSource, static_cast<uint64_t>(a.source), static_cast<uint64_t>(b.source)});
  }
  // 0 is not known.
  const auto known = [&](Caveat::Of of, uint64_t was, uint64_t is) {
    if (was != is && was != 0 && is != 0) caveats.push_back({of, was, is});
  };
  known(Caveat::Of::kBatch, a.batch_size, b.batch_size);
  if (a.training != b.training && !imported) {
    caveats.push_back({Caveat::Of::kMode, uint64_t{a.training}, uint64_t{b.training}});
  }
  known(Caveat::Of::kTf32InConvolutions, a.policy.cudnn_tf32, b.policy.cudnn_tf32);
  known(Caveat::Of::kTf32InProducts, a.policy.matmul_tf32, b.policy.matmul_tf32);
  known(Caveat::Of::kCudnnBenchmark, a.policy.cudnn_benchmark, b.policy.cudnn_benchmark);
  known(Caveat::Of::kCudnnDeterministic, a.policy.cudnn_deterministic, b.policy.cudnn_deterministic);
  if (a.policy.autocast_dtype != b.policy.autocast_dtype && !imported) {
    caveats.push_back({Caveat::Of::kAutocast, 0, 0, a.policy.autocast_dtype, b.policy.autocast_dtype});
  }
  const auto version = [](const Run& run) {
    return run.process_list.empty() ? std::string() : run.process_list.front().torch_version;
  };
  if (version(before) != version(after) && !version(before).empty() && !version(after).empty()) {
    caveats.push_back({Caveat::Of::kTorchVersion, 0, 0, version(before), version(after)});
  }
  return caveats;
}

}  // namespace rfinject::cli
