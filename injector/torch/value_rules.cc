#include "injector/torch/value_rules.h"

#include <algorithm>
#include <iterator>

namespace rfinject {
namespace {

constexpr std::string_view kRandom[] = {
    "bernoulli",   "bernoulli_",  "binomial",         "cauchy_",           "exponential_",      "geometric_",
    "log_normal_", "multinomial", "normal",           "normal_",           "poisson",           "random_",
    "randperm",    "uniform_",    "rrelu_with_noise", "rrelu_with_noise_", "_sample_dirichlet", "_standard_gamma"};

constexpr std::string_view kProducts[] = {"mm",
                                          "addmm",
                                          "addmm_",
                                          "bmm",
                                          "baddbmm",
                                          "baddbmm_",
                                          "_addmm_activation",
                                          "addmv",
                                          "addmv_",
                                          "mv",
                                          "_sparse_sparse_matmul",
                                          "sparse_sampled_addmm",
                                          "addr",
                                          "dot",
                                          "vdot",
                                          "cdist",
                                          "_cdist_forward",
                                          "_pdist_forward"};

constexpr std::string_view kCounts[] = {
    "nonzero", "_unique2", "unique_dim", "unique_consecutive", "unique_dim_consecutive", "_sparse_sparse_matmul"};

// Operators that launch nothing: what they return lies where their operand lies. A step of a transformer has a
// thousand.
constexpr std::string_view kViews[] = {
    "_reshape_alias",   "_unsafe_view", "alias",    "as_strided", "detach",     "detach_",
    "diagonal",         "expand",       "permute",  "select",     "slice",      "split",
    "split_with_sizes", "squeeze",      "squeeze_", "t",          "t_",         "transpose",
    "transpose_",       "unbind",       "unfold",   "unsqueeze",  "unsqueeze_", "view"};

// Parts of the names of operators that are left alone: those that draw without an argument for it, recurrent ones and
// attention for the same reason, and those that give out memory or only look.
constexpr std::string_view kNever[] = {
    "dropout", "attention", "lstm",          "_rnn", "gru",         "cudnn",    "_fft",
    "empty",   "resize",    "record_stream", "set_", "_pin_memory", "_to_copy", "_local_scalar_dense"};

template <typename List>
bool Has(const List& list, std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

}  // namespace

ValueRule ValueRuleOf(std::string_view name) {
  ValueRule rule;
  const size_t colons = name.find("::");
  if (colons != std::string_view::npos) name.remove_prefix(colons + 2);
  rule.never = std::any_of(std::begin(kNever), std::end(kNever),
                           [name](std::string_view part) { return name.find(part) != std::string_view::npos; }) ||
               Has(kViews, name);
  rule.random = Has(kRandom, name);
  rule.product = Has(kProducts, name);
  rule.counts = Has(kCounts, name);
  rule.merges = name == "_coalesce";
  rule.compares = name == "equal";
  rule.makes = name == "tril_indices" || name == "triu_indices";
  rule.exact = name == "lu_unpack" || name == "linalg_lu_solve" || name == "linalg_ldl_solve" ||
               name.starts_with("_convert_indices_");
  rule.whole = name == "linalg_lu" || name == "linalg_lstsq";
  rule.all = name == "all";
  if (name == "_amp_foreach_non_finite_check_and_unscale_" || name == "_amp_update_scale_") {
    rule.writes = 0b11;
  } else if (name.starts_with("_fused_adam")) {
    rule.writes = 0b11101;  // all but the gradients and the counts of steps
  } else if (name.starts_with("_fused_sgd") || name.starts_with("_fused_adagrad")) {
    rule.writes = 0b101;
  } else if (name == "native_batch_norm" || name == "cudnn_batch_norm") {
    rule.writes = 0b11000;
  } else if (!name.empty() && name.back() == '_' && !Has(kViews, name)) {
    rule.writes = 1;
  }
  return rule;
}

}  // namespace rfinject
