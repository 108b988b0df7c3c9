// estimate_replay [--list] [--no-tf32] GPU FILE…: costs recorded operators (record_operators.py) and prints a table
// per operator. A developer's tool: what does the cost model make of a real training step? --list prints a line for
// each kernel, "operator TAB signature TAB bytes TAB FLOP by precision", which bench/throughput_accuracy reads.
#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <string_view>

#include "operators/cost.h"
#include "operators/op_table.h"
#include "operators/signature.h"
#include "operators/testing/op_text.h"

using rfinject::OpCall;
using rfinject::estimate::Cost;

int main(int argc, char** argv) {
  const bool list = argc > 1 && std::strcmp(argv[1], "--list") == 0;
  if (list) --argc, ++argv;
  rfinject::estimate::PrecisionPolicy policy;
  if (argc > 1 && std::strcmp(argv[1], "--no-tf32") == 0) {
    policy = {.convolution_tf32 = false, .matmul_tf32 = false};
    --argc, ++argv;
  }
  if (argc < 3) {
    std::fprintf(stderr, "usage: estimate_replay [--list] [--no-tf32] GPU FILE...\n");
    return 2;
  }
  const rfinject::Gpu* gpu = rfinject::FindGpu(argv[1]);
  if (gpu == nullptr) {
    std::fprintf(stderr, "estimate_replay: no GPU '%s' in the table\n", argv[1]);
    return 2;
  }
  struct Sum {
    uint64_t calls = 0, flop = 0, bytes = 0, ns = 0;
    bool known = true;
  };
  for (int i = 2; i < argc; ++i) {
    std::ifstream file(argv[i]);
    if (!file) {
      std::fprintf(stderr, "estimate_replay: cannot open %s\n", argv[i]);
      return 1;
    }
    std::map<std::string, Sum> sums;
    Sum total;
    Replay(rfinject::testing::ReadOps(file), [&](const OpCall& call) {
      const Cost cost = rfinject::estimate::EstimateCost(call, *gpu, policy);
      if (!cost.kernel) return;
      if (list) {
        std::array<char, rfinject::estimate::kMaxSignature> buffer;
        const std::string_view signature = rfinject::estimate::FormatSignature(call, buffer);
        std::printf("%.*s\t%.*s\t%" PRIu64 "\t", static_cast<int>(call.name.size()), call.name.data(),
                    static_cast<int>(signature.size()), signature.data(), cost.compulsory_bytes);
        for (size_t p = 0; p < rfinject::kPrecisionCount; ++p) {
          std::printf("%s%" PRIu64, p == 0 ? "" : " ", cost.executed_flop[p]);
        }
        std::printf("\n");
        return;
      }
      for (Sum* sum : {&sums[std::string(call.name)], &total}) {
        ++sum->calls;
        sum->flop += cost.model_flop;
        sum->bytes += cost.compulsory_bytes;
        sum->ns += cost.time_ns;
        sum->known = cost.known;
      }
    });
    if (list) continue;
    std::printf("%s on %s\n%-56s %8s %16s %16s %10s\n", argv[i], argv[1], "operator", "calls", "model FLOP", "bytes",
                "us");
    const auto print = [](const char* name, const Sum& sum) {
      std::printf("%-56s %8" PRIu64 " %16" PRIu64 " %16" PRIu64 " %10.1f%s\n", name, sum.calls, sum.flop, sum.bytes,
                  static_cast<double>(sum.ns) / 1e3, sum.known ? "" : "  no rule");
    };
    for (const auto& [name, sum] : sums) print(name.c_str(), sum);
    total.known = true;
    print("total", total);
  }
  return 0;
}
