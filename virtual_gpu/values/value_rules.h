// File: value_rules.h
//
// What must be known of an operator, by its name, before its CPU kernel may compute what its CUDA kernel would have.
#ifndef RFINJECT_VIRTUAL_GPU_VALUES_VALUE_RULES_H_
#define RFINJECT_VIRTUAL_GPU_VALUES_VALUE_RULES_H_

#include <cstdint>
#include <string_view>

namespace rfinject {

struct ValueRule {
  bool never = false;     // it launches nothing, draws from the CPU's generator, or means something else on the CPU
  bool random = false;    // one of its last arguments is a generator
  bool product = false;   // it costs more than its operands' size
  bool counts = false;    // it reads how much its kernels have found, and gives out as much memory: nonzero, unique
  bool merges = false;    // it reads to how few numbers a sparse tensor comes when those of one place are added
  bool compares = false;  // it reads whether its kernels have found all equal
  bool makes = false;     // it has no operand on the device; `device` is its last argument but one
  bool exact = false;     // its CPU kernel trusts the row numbers that it is given, so that these must be known
  bool whole = false;     // what runs inside it works in place: it is computed as a whole afterwards
  bool all = false;       // it asks whether all are true
  bool covers = false;    // `whole`, and what runs inside it need not be computed at all
  bool done = false;    // what it launches itself changes nothing that is read; the rest is other operators inside it
  bool wide = false;    // halves are computed as floats, as GPUs add up their products
  uint32_t writes = 0;  // a bit for each argument, from the first on, that it writes to
};

// `name` is "aten::add_", without the overload's. `every`: all values are computed, not only those of small tensors.
ValueRule ValueRuleOf(std::string_view name, bool every);

}  // namespace rfinject

#endif  // RFINJECT_VIRTUAL_GPU_VALUES_VALUE_RULES_H_
