#include "cli/report/rows/kernel_name.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>

namespace rfinject::cli {
namespace {

constexpr std::string_view kAnonymous = "(anonymous namespace)";

bool IsOfName(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '~'; }

// Where the name ends: before its template arguments, or its arguments.
size_t EndOfName(std::string_view kernel) {
  for (size_t i = 0; i < kernel.size(); ++i) {
    if (kernel.substr(i).starts_with(kAnonymous)) {
      i += kAnonymous.size() - 1;
    } else if (kernel[i] == '<' || kernel[i] == '(') {
      return i;
    }
  }
  return kernel.size();
}

// What is between the template's brackets; the opening one is at `begin`.
std::string_view TemplateArguments(std::string_view kernel, size_t begin) {
  size_t depth = 0;
  for (size_t i = begin; i < kernel.size(); ++i) {
    if (kernel[i] == '<') ++depth;
    if (kernel[i] == '>' && (i == 0 || kernel[i - 1] != '-') && --depth == 0) {
      return kernel.substr(begin + 1, i - begin - 1);
    }
  }
  return {};
}

// PyTorch hands the function that a kernel applies through these.
bool OnlyPassesOn(std::string_view name) {
  constexpr std::array<std::string_view, 4> kNames = {"gpu_kernel_impl", "gpu_kernel_impl_nocast", "gpu_kernel",
                                                      "launch_legacy_kernel"};
  return std::ranges::find(kNames, name) != kNames.end();
}

// The first name in template arguments that is a function's: "FillFunctor", "direct_copy_kernel_cuda". "" when none
// is.
std::string_view FunctionIn(std::string_view arguments) {
  for (size_t i = 0; i < arguments.size();) {
    if (!IsOfName(arguments[i])) {
      ++i;
      continue;
    }
    const size_t begin = i;
    while (i < arguments.size() && IsOfName(arguments[i])) ++i;
    const std::string_view name = arguments.substr(begin, i - begin);
    const bool is_scope = arguments.substr(i).starts_with("::");
    const bool does = name.find("unctor") != name.npos || name.find("kernel") != name.npos ||
                      name.find("Kernel") != name.npos || name.ends_with("Op") || name.ends_with("_cuda") ||
                      name.starts_with("cutlass_");
    if (!is_scope && does && !OnlyPassesOn(name)) return name;
  }
  return {};
}

}  // namespace

std::string ShortKernelName(std::string_view kernel) {
  const size_t end = EndOfName(kernel);
  if (end == kernel.size())
    return std::string(kernel);  // no function of C++: an operator, or what a library calls its own
  std::string_view name = kernel.substr(0, end);
  if (const size_t scope = name.rfind("::"); scope != std::string_view::npos) name.remove_prefix(scope + 2);
  if (const size_t space = name.rfind(' '); space != std::string_view::npos) name.remove_prefix(space + 1);
  if (name.empty()) return std::string(kernel);
  std::string result(name);
  if (end < kernel.size() && kernel[end] == '<') {
    const std::string_view function = FunctionIn(TemplateArguments(kernel, end));
    if (!function.empty()) result += "<" + std::string(function) + ">";
  }
  return result;
}

}  // namespace rfinject::cli
