// File: names.h
//
// Reads the texts in which Nsight Compute writes a launch's size and the NVTX ranges around it.
#ifndef RFINJECT_CLI_IMPORT_NCU_NAMES_H_
#define RFINJECT_CLI_IMPORT_NCU_NAMES_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace rfinject::cli {

// "(64, 1, 1)", "64 1 1" or "64,1,1"; what is missing is 0.
std::array<uint32_t, 3> ParseTriple(std::string_view text);

// The place of a launch, as NVTX ranges tell it.
struct NvtxSite {
  std::string layer;  // names of the ranges, outermost first, joined by '/'
  std::string op;     // the innermost range of torch's emit_nvtx
};

// `7  "<default domain>:layer1:none:…"  "<default domain>:aten::conv2d, seq = 12:none:…"`. Ranges of torch's
// emit_nvtx are operators; all others are layers.
NvtxSite ReadNvtx(std::string_view text);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_NCU_NAMES_H_
