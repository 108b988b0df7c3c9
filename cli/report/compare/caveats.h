// File: caveats.h
//
// What else differs between two runs that are compared and explains changes: the network, the GPU, the batch, what
// PyTorch was told, its version.
#ifndef RFINJECT_CLI_REPORT_COMPARE_CAVEATS_H_
#define RFINJECT_CLI_REPORT_COMPARE_CAVEATS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/profile/profile.h"

namespace rfinject::cli {

// One difference; the words are the outputs' (CaveatText).
struct Caveat {
  enum class Of : uint8_t {
    kNetwork,  // has no details
    kSource,   // SourceKind
    kBatch,
    kMode,  // 1: training
    // Of the policy: 1: off, 2: on.
    kTf32InConvolutions,
    kTf32InProducts,
    kCudnnBenchmark,
    kCudnnDeterministic,
    kAutocast,      // a text: the type; empty: none
    kTorchVersion,  // a text
    kGpu,           // a text: the row of gpus.csv
  } of{};
  uint64_t before = 0, after = 0;
  std::string before_text = {}, after_text = {};
};

// The differences, the weightiest first. A side's GPU is the name of its Machine; empty where it is not known.
std::vector<Caveat> CaveatsOf(const Run& before, std::string_view before_gpu, const Run& after,
                              std::string_view after_gpu);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_COMPARE_CAVEATS_H_
