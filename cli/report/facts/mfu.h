// File: mfu.h
//
// Model FLOP utilization: the FLOP that the model's mathematics asks for, over what the GPU could do in the time of a
// step (Chowdhery et al., "PaLM", 2022, appendix B). As there, products count (of matrices and of filters) of forward
// and backward; what is computed again does not, nor do norms, activations and the optimizer. Of causal attention all
// scores count, those too that its mask hides; "useful" is the count without these.
#ifndef RFINJECT_CLI_REPORT_FACTS_MFU_H_
#define RFINJECT_CLI_REPORT_FACTS_MFU_H_

#include <span>
#include <string>

#include "cli/report/facts/fact.h"
#include "proto/wire/vocabulary.h"

namespace rfinject::cli {

struct Mfu {
  double flop = 0;         // the model's products, a step; of a trace that does not tell them apart all model FLOP
  double useful_flop = 0;  // of these, what no mask hides
  double ns = 0;           // of a step: by the clock where that is the GPU's, else the time of its kernels
  Precision precision{};   // in which most FLOP were executed
  double peak_flop_per_s = 0;  // of that precision
  double share() const { return flop / (ns * 1e-9 * peak_flop_per_s); }
  double useful_share() const { return share() * useful_flop / flop; }
};

// `share()` may be asked where `flop` is not 0; it is 0 where one of the others is not known.
Mfu MfuOf(const Report& report);
// "MFU 43 % (useful 40 %) of 312 TFLOP/s (BF16 tensor)", the second where a mask hides something; empty where it is
// not known.
std::string MfuText(const Report& report);
std::span<const FactOf<Report>> MfuFacts();

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_FACTS_MFU_H_
