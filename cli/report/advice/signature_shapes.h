// File: signature_shapes.h
//
// Reads the shapes of operands out of an estimated kernel's signature (operators/signature.h).
#ifndef RFINJECT_CLI_REPORT_ADVICE_SIGNATURE_SHAPES_H_
#define RFINJECT_CLI_REPORT_ADVICE_SIGNATURE_SHAPES_H_

#include <cstddef>
#include <string_view>
#include <vector>

namespace rfinject::cli {

struct SignatureShape {
  double elements = 1;
  double first = 1, last = 1;  // dimensions
  size_t rank = 0;
  double element_bytes = 4;
};

// The first tensors of a signature, eight at most; lists are left out.
std::vector<SignatureShape> ShapesOf(std::string_view signature);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_ADVICE_SIGNATURE_SHAPES_H_
