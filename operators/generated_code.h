// File: generated_code.h
//
// Reads a Python module that Inductor (torch.compile) has generated: which kernels it launches on which line, what
// they read and write, and which operators of the compiled graph they compute.
//
//   for (const GeneratedCall& call : ReadGeneratedCode(source, graph)) … call.line, call.kernel, call.bytes,
//   call.nodes
//
// The module says most of it itself: each buffer with its shape, each kernel with its loads and stores, and in
// comments the nodes of the graph. What the comments do not say is in `graph`, the text that
// injector/python/compiled_code.cc makes of Inductor's own objects while it compiles; where the module comes out of
// Inductor's cache there is none.
#ifndef RFINJECT_OPERATORS_GENERATED_CODE_H_
#define RFINJECT_OPERATORS_GENERATED_CODE_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "operators/fx_nodes.h"

namespace rfinject {

// A module of the program whose work a call does.
struct GeneratedLayer {
  std::string path;        // below the module that was compiled: "layer1.0.bn1"; empty: that module itself
  std::string class_name;  // "BatchNorm2d"
  friend bool operator==(const GeneratedLayer&, const GeneratedLayer&) = default;
};

// Of an attention whose mask leaves whole blocks out (flex_attention): where the kernel is told how many blocks of
// keys are left for each block of queries. That is in the GPU's memory.
struct MaskBlocks {
  // Among the kernel's first parameters, which are pointers; -1: there is none. Of blocks that the mask leaves in
  // part, and in full: a vector of int32 each.
  std::array<int, 2> counts = {-1, -1};
  uint64_t rows = 0;    // numbers in such a vector
  uint64_t blocks = 0;  // that there are, in all rows together; 0: nothing is left out
};

// One line of the module that launches a kernel of Triton's, or calls an operator of PyTorch's or of a library's.
struct GeneratedCall {
  uint32_t line = 0;         // from 1
  std::string kernel;        // of Triton; empty: an operator
  bool bytes_known = false;  // of a kernel: the sizes of all that it is given are known
  uint64_t bytes = 0;        // what it reads, once, and what it writes, once
  // A bit for each of the kernel's first parameters, which are pointers: it may change what that one points to.
  uint64_t written = UINT64_MAX;
  // The nodes of the graph that this call is the first to compute. A node counts in one call only: others compute it
  // again because that takes less time than to read it, or they end a reduction that this one began.
  std::vector<FxCall> nodes;
  // What is not known of its operators, as a sentence's part; empty: nothing.
  std::string why_no_flop;
  MaskBlocks mask;
  std::vector<GeneratedLayer> layers;  // in the graph's order; empty where that is not known
};

// Whether `source` is such a module.
bool IsGeneratedCode(std::string_view source) noexcept;

// Returns the calls by line. `graph` may be empty. Lines of it, whose fields are separated by tabs:
//   %…                                      a node (fx_nodes.h)
//   layer NODE PATH CLASS                   where the node came from
//   buffer NAME SIZES STRIDES               "(8, 64)" and "(64, 1)", of a buffer whose shape the module may not say
//   kernel KIND SOURCES NODES BUFFERS USERS in the order in which they are called; lists are separated by commas.
//                                           KIND: "triton", or "extern" for an operator; SOURCES: sorted; USERS:
//                                           nodes that what it writes is prepared for, where it computes none or
//                                           none that came from a module: seeds for all random numbers
std::vector<GeneratedCall> ReadGeneratedCode(std::string_view source, std::string_view graph);

}  // namespace rfinject

#endif  // RFINJECT_OPERATORS_GENERATED_CODE_H_
