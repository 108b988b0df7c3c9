// File: sim_checks.h
//
// What the functions of the simulated CUPTI and Perfworks demand of their callers, as NVIDIA's headers do, and how
// the real libraries are asked.
#ifndef RFINJECT_INTEGRATION_TESTS_SIMULATED_GPU_SIM_CHECKS_H_
#define RFINJECT_INTEGRATION_TESTS_SIMULATED_GPU_SIM_CHECKS_H_

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "integration_tests/simulated_gpu/sim_costs.h"
#include "integration_tests/simulated_gpu/simulator.h"

namespace sim {

// A call lasts as long as it costs. Declared before a lock, so that nobody waits for one meanwhile.
class Charged {
 public:
  explicit Charged(std::string_view function) : function_(function), start_(sim_now()) { Add(function); }
  ~Charged() {
    if (only_computes_) {
      sim_compute_until(own_start_ + ns_);
    } else if (ns_ != 0) {
      if (HoldsLaunches(function_)) sim_hold_until(start_ + ns_);
      sim_wait_until(start_ + ns_);
    }
  }
  Charged(const Charged&) = delete;
  Charged& operator=(const Charged&) = delete;

  void Add(std::string_view what) { ns_ += sim_costs() != 0 ? CostOf(what).ns : 0; }
  // What each of so many, ranges or samples, adds to the function's cost.
  void Each(uint64_t units) { Each(function_, units); }
  void Each(std::string_view what, uint64_t units) { ns_ += sim_costs() != 0 ? units * CostOf(what).each_ns : 0; }
  // The call only computes, for as long as it costs and no longer. Not for one that waits, or calls back.
  void OnlyComputes() { only_computes_ = sim_costs() != 0; }
  // When the call will have ended.
  uint64_t end() const { return std::max(start_ + ns_, sim_now()); }

 private:
  const std::string_view function_;
  const uint64_t start_, own_start_ = sim_own_now();
  uint64_t ns_ = 0;
  bool only_computes_ = false;
};

// Notes a breach of the headers' demands, by which a test fails.
inline void Violation(const char* function, const char* what) {
  sim_violation((std::string(function) + ": " + what).c_str());
}

// A library of the real CUPTI, which lies in SIM_REAL_CUPTI; null, and a line that says so, where it does not. It is
// opened by its path, because the bare name would find a simulated one again.
inline void* RealLibrary(const char* file) {
  const char* folder = getenv("SIM_REAL_CUPTI");
  void* library = dlopen((std::string(folder != nullptr ? folder : "") + "/" + file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fprintf(stderr, "simulated CUPTI: no real one in SIM_REAL_CUPTI: %s\n", dlerror());
  return library;
}

// Calls the real function; `missing` where there is none.
template <typename Result, typename Params>
Result CallReal(void* library, const char* name, Params* params, Result missing) {
  auto function = library == nullptr ? nullptr : reinterpret_cast<Result (*)(Params*)>(dlsym(library, name));
  return function != nullptr ? function(params) : missing;
}

inline bool UsesTensor(const SimKernel* kernel) {
  for (size_t i = 0; i < kernel->metric_count; ++i) {
    if (strstr(kernel->metrics[i].name, "ops_path_tensor") != nullptr && kernel->metrics[i].value > 0) return true;
  }
  return false;
}

// The sum of a metric over kernels. Active cycles are of one SM with a clock of 1 GHz.
inline double ValueOf(const std::vector<const SimKernel*>& kernels, std::string_view metric) {
  double sum = 0;
  if (sim_zeros() != 0 && metric.find("sass") == metric.npos) return 0;
  const bool active = metric.find("pipe_tensor_cycles_active") != metric.npos;
  for (const SimKernel* kernel : kernels) {
    if (active && UsesTensor(kernel)) sum += static_cast<double>(kernel->ns);
    for (size_t i = 0; i < kernel->metric_count; ++i) {
      if (metric == kernel->metrics[i].name) sum += kernel->metrics[i].value;
    }
  }
  return sum;
}

}  // namespace sim

// The failure that a test has asked for; else what the call costs, to which `charged` may add.
#define SIM_ENTER(name)                                                                    \
  if (int code = sim_take_failure(name); code != 0) return static_cast<CUptiResult>(code); \
  [[maybe_unused]] sim::Charged charged(name)
#define SIM_CHECK(name, condition, code) \
  if (!(condition)) {                    \
    sim::Violation(name, #condition);    \
    return code;                         \
  }
#define SIM_CHECK_PARAMS(name, type)                                                        \
  SIM_CHECK(name, params != nullptr, CUPTI_ERROR_INVALID_PARAMETER);                        \
  SIM_CHECK(name, params->structSize == type##_STRUCT_SIZE, CUPTI_ERROR_INVALID_PARAMETER); \
  SIM_CHECK(name, params->pPriv == nullptr, CUPTI_ERROR_INVALID_PARAMETER)

#endif  // RFINJECT_INTEGRATION_TESTS_SIMULATED_GPU_SIM_CHECKS_H_
