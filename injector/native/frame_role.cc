#include "injector/native/frame_role.h"

#include <cxxabi.h>

#include <cstdlib>
#include <cstring>
#include <vector>

namespace rfinject {
namespace {

// Longer names are not demangled: the text can be many times as long.
constexpr size_t kMaxMangled = 4096;

// Finds the first or the last place of `what` in `text` that is outside of <…> and (…); npos if there is none.
enum class Which : uint8_t { kFirst, kLast };
size_t FindOutside(std::string_view text, std::string_view what, Which which) {
  int depth = 0;
  size_t found = std::string_view::npos;
  for (size_t i = 0; i < text.size(); ++i) {
    if (depth == 0 && text.substr(i, what.size()) == what) {
      found = i;
      if (which == Which::kFirst) return found;
    }
    if (text[i] == '<' || text[i] == '(') ++depth;
    if ((text[i] == '>' || text[i] == ')') && depth > 0) --depth;
  }
  return found;
}

// "a::B<c, d>" is "a::B"; the template's arguments go into `*arguments`.
std::string_view WithoutArguments(std::string_view name, std::vector<std::string_view>* arguments) {
  if (!name.ends_with('>')) return name;
  const size_t open = FindOutside(name, "<", Which::kFirst);
  if (open == std::string_view::npos) return name;
  std::string_view rest = name.substr(open + 1, name.size() - open - 2);
  while (arguments != nullptr && !rest.empty()) {
    const size_t comma = std::min(FindOutside(rest, ", ", Which::kFirst), rest.size());
    arguments->push_back(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 2, rest.size()));
  }
  return name.substr(0, open);
}

std::string_view LastComponent(std::string_view name) {
  const size_t colons = FindOutside(name, "::", Which::kLast);
  return colons == std::string_view::npos ? name : name.substr(colons + 2);
}

// "torch::nn::Conv2dImpl" is Conv2d, as the program writes it.
std::string ModuleName(std::string_view type) {
  std::string_view name = LastComponent(WithoutArguments(type, nullptr));
  constexpr std::string_view kImpl = "Impl";
  if (name.size() > kImpl.size() && name.ends_with(kImpl)) name.remove_suffix(kImpl.size());
  return std::string(name);
}

bool IsImpl(std::string_view type) { return WithoutArguments(type, nullptr).ends_with("Impl"); }

}  // namespace

bool MayHaveRole(std::string_view mangled) noexcept {
  if (!mangled.starts_with("_Z") || mangled.size() > kMaxMangled) return false;
  return mangled.find("7forward") != std::string_view::npos || mangled.starts_with("_ZN5torch5optim") ||
         mangled.find("9zero_gradE") != std::string_view::npos || mangled.starts_with("_ZN5torch4data");
}

FrameRole RoleOfFunction(std::string_view full) {
  FrameRole role;
  std::string text(full);
  constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  for (size_t at; (at = text.find(kAnonymous)) != std::string::npos;) text.erase(at, kAnonymous.size());
  std::string_view name = text;
  if (const size_t clone = name.find(" [clone"); clone != std::string_view::npos) name = name.substr(0, clone);

  const size_t arguments = FindOutside(name, "(", Which::kFirst);
  if (arguments == std::string_view::npos) return role;
  // "X::forward(…)::{lambda()#1}::operator()() const" is a part of X::forward, which is on the stack as well.
  if (FindOutside(name.substr(arguments), "::", Which::kFirst) != std::string_view::npos) return role;
  name = name.substr(0, arguments);
  if (const size_t type = FindOutside(name, " ", Which::kLast); type != std::string_view::npos) {
    name = name.substr(type + 1);
  }
  if (name.starts_with("torch::data::")) {
    role.kind = FrameRole::Kind::kData;
    return role;
  }
  name = WithoutArguments(name, nullptr);
  const size_t colons = FindOutside(name, "::", Which::kLast);
  if (colons == std::string_view::npos) return role;
  const std::string_view method = name.substr(colons + 2);
  const std::string_view type = name.substr(0, colons);
  if (method == "zero_grad") {
    role.kind = FrameRole::Kind::kZeroGrad;
  } else if (method == "step" && type.starts_with("torch::optim::")) {
    role.kind = FrameRole::Kind::kOptimizerStep;
  } else if (method == "forward") {
    std::vector<std::string_view> parameters;
    const std::string_view plain = WithoutArguments(type, &parameters);
    if (plain == "torch::nn::AnyModuleHolder" && !parameters.empty()) {
      role.kind = FrameRole::Kind::kHolder;
      role.class_name = ModuleName(parameters.front());
      role.of_torch = parameters.front().starts_with("torch::");
      return role;
    }
    for (std::string_view no_module : {"torch::nn::AnyModule", "torch::nn::ModuleHolder", "torch::nn::functional",
                                       "torch::autograd", "at", "c10", "std"}) {
      if (plain == no_module || (plain.starts_with(no_module) && plain.substr(no_module.size()).starts_with("::"))) {
        return role;
      }
    }
    role.kind = FrameRole::Kind::kModule;
    role.of_torch = plain.starts_with("torch::");
    role.class_name = ModuleName(type);
    // torch::nn::BatchNormImplBase<2ul, torch::nn::BatchNorm2dImpl>: a base class whose template argument is the
    // derived class.
    if (!parameters.empty() && IsImpl(parameters.back())) role.class_name = ModuleName(parameters.back());
  }
  return role;
}

std::string Demangle(const char* mangled) {
  if (std::strncmp(mangled, "_Z", 2) != 0 || std::strlen(mangled) > kMaxMangled) return mangled;
  int status = 0;
  char* text = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  if (text == nullptr) return mangled;
  struct Free {
    char* memory;
    ~Free() { std::free(memory); }
  } owner{text};
  return text;
}

}  // namespace rfinject
