// File: call_parts.h
//
// Divides what one call of an operator computes among the kernels that it launches.
#ifndef RFINJECT_CLI_MODEL_CALL_PARTS_H_
#define RFINJECT_CLI_MODEL_CALL_PARTS_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "proto/wire/stat.h"

namespace rfinject::cli {

struct WorkRange {
  uint64_t first = 0, last = 1, of = 1;
};
// A launch's part of its operator's work. The parts of all kernels of a call add up to the work, to the last FLOP.
class WorkPart {
 public:
  WorkPart() = default;  // all of it
  explicit WorkPart(WorkRange own, WorkRange group = {}, WorkRange executed = {})
      : group_(group), own_(own), executed_(executed) {}
  uint64_t Of(uint64_t value) const;
  // The same of what a kernel executes, where it needs fewer multiplications than the definition has.
  uint64_t OfExecuted(uint64_t value) const;

 private:
  WorkRange group_, own_, executed_;  // what the kernels of one gradient have; and of that what this one has
};

// A kernel that ran for a call of an operator.
struct KernelOfCall {
  std::string_view name;
  uint64_t ns = 0;
};

// What of a call decides how its kernels share the work.
struct CallShape {
  bool multiplies = false;  // there are products among its FLOP
  int gradients = 0;        // that a convolution's backward computes, of its input and of its weight
  // Of a convolution over planes: the results' plane and the filter; 0: another operator, or not known.
  int64_t plane_h = 0, plane_w = 0, filter_h = 0, filter_w = 0;
};

// Which part of the call's work each of its kernels has: those that multiply, where the operator does, by how long
// they took; what brings operands into another layout or adds parts up has none. Two gradients of a convolution have
// as many FLOP each.
std::vector<WorkPart> PartsOf(const CallShape& call, std::span<const KernelOfCall> kernels);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_MODEL_CALL_PARTS_H_
