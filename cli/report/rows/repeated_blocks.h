// File: repeated_blocks.h
//
// Finds the equal layers of a model's repeated blocks. A transformer has the same dozen layers in each of its blocks,
// and one row for `h.*.mlp.act`, which adds them up, says more than the same row for `h.0.mlp.act` to `h.11.mlp.act`.
#ifndef RFINJECT_CLI_REPORT_ROWS_REPEATED_BLOCKS_H_
#define RFINJECT_CLI_REPORT_ROWS_REPEATED_BLOCKS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/report/rows/row.h"

namespace rfinject::cli {

struct RepeatedBlocks {
  // The rows that stand for two layers or more: Row::layer is their common path, "h.*.attn.proj", Row::layers their
  // number. What one layer has (class, parameters, shapes) is that of each of them; amounts are sums. A half-width is
  // the sum of the layers', as if all erred together, and unknown where that of one is.
  std::vector<Row> groups;
  std::vector<int64_t> group_of;  // of each given row: its place in `groups`, or -1
};

// Rows of By::kLayer, also of one for each phase. Layers are equal that have the same path but for numbers, the same
// class, parameters and output; where outputs are not known, the same FLOP and bytes.
RepeatedBlocks FindRepeatedBlocks(std::span<const Row> rows);

// A layer's path with the numbers of repeated blocks left open: "h.*.attn" of "h.11.attn", "Block_*.Linear_*" of
// "Block_3.Linear_7".
std::string WithoutNumbers(std::string_view path);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_ROWS_REPEATED_BLOCKS_H_
