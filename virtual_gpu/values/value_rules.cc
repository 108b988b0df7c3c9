#include "virtual_gpu/values/value_rules.h"

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

constexpr std::string_view kCounts[] = {"nonzero",
                                        "_unique",
                                        "_unique2",
                                        "unique_dim",
                                        "unique_consecutive",
                                        "unique_dim_consecutive",
                                        "_sparse_sparse_matmul"};

// Operators that launch nothing: what they return lies where their operand lies. A step of a transformer has a
// thousand.
constexpr std::string_view kViews[] = {
    "_reshape_alias",   "_unsafe_view", "alias",    "as_strided", "detach",     "detach_",
    "diagonal",         "expand",       "permute",  "select",     "slice",      "split",
    "split_with_sizes", "squeeze",      "squeeze_", "t",          "t_",         "transpose",
    "transpose_",       "unbind",       "unfold",   "unsqueeze",  "unsqueeze_", "view"};

// Parts of the names of operators that are left alone where only small tensors are computed: those that draw without
// an argument for it, and those whose operands are seldom small.
constexpr std::string_view kNotSmall[] = {"dropout", "attention", "lstm", "_rnn", "gru", "cudnn", "_fft"};

// The same of operators that are always left alone: those that give out memory or only look.
constexpr std::string_view kNever[] = {"empty",       "resize",   "record_stream",      "set_",
                                       "_pin_memory", "_to_copy", "_local_scalar_dense"};

// Operators that are computed as a whole where all values are: CUDA has a choice of others inside them, most of which
// the CPU has not. The backward may use none of what those give.
constexpr std::string_view kCovers[] = {"_convolution",
                                        "_cholesky_solve_helper",
                                        "_linalg_solve_ex",
                                        "bmm",
                                        "cholesky_inverse",
                                        "convolution_backward",
                                        "linalg_inv_ex",
                                        "_native_multi_head_attention",
                                        "_scaled_dot_product_efficient_attention",
                                        "_scaled_dot_product_efficient_attention_backward",
                                        "_scaled_dot_product_flash_attention",
                                        "_scaled_dot_product_flash_attention_backward",
                                        "_transformer_encoder_layer_fwd"};

// Operators that launch, of themselves, what prepares cuDNN's dropout.
constexpr std::string_view kDone[] = {
    "_cudnn_init_dropout_state", "_cudnn_rnn_flatten_weight", "gru", "lstm", "rnn_relu", "rnn_tanh"};

template <typename List>
bool Has(const List& list, std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

template <typename List>
bool HasPart(const List& list, std::string_view name) {
  return std::any_of(std::begin(list), std::end(list),
                     [name](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

}  // namespace

ValueRule ValueRuleOf(std::string_view name, bool every) {
  ValueRule rule;
  const size_t colons = name.find("::");
  if (colons != std::string_view::npos) name.remove_prefix(colons + 2);
  rule.never = HasPart(kNever, name) || Has(kViews, name) || (!every && HasPart(kNotSmall, name));
  rule.random = Has(kRandom, name);
  rule.product = Has(kProducts, name);
  rule.counts = Has(kCounts, name);
  rule.merges = name == "_coalesce";
  rule.compares = name == "equal";
  rule.makes = name == "tril_indices" || name == "triu_indices";
  rule.exact = name == "lu_unpack" || name == "linalg_lu_solve" || name == "linalg_ldl_solve" ||
               name.starts_with("_convert_indices_");
  rule.covers = every && Has(kCovers, name);
  rule.done = every && Has(kDone, name);
  rule.whole = name == "linalg_lu" || name == "linalg_lstsq" || rule.covers;
  rule.wide = every && (rule.product || rule.covers || name.find("softmax") != std::string_view::npos ||
                        name.find("batch_norm") != std::string_view::npos);
  rule.all = name == "all";
  if (name == "_amp_foreach_non_finite_check_and_unscale_" || name == "_amp_update_scale_") {
    rule.writes = 0b11;
  } else if (name.starts_with("_fused_adam")) {
    rule.writes = 0b11101;  // all but the gradients and the counts of steps
  } else if (name.starts_with("_fused_sgd") || name.starts_with("_fused_adagrad")) {
    rule.writes = 0b101;
  } else if (name == "native_batch_norm" || name == "cudnn_batch_norm" || name == "_batch_norm_with_update" ||
             name == "_native_batch_norm_legit") {
    rule.writes = 0b11000;
  } else if (!name.empty() && name.back() == '_' && !Has(kViews, name)) {
    rule.writes = 1;
  }
  return rule;
}

}  // namespace rfinject
