// File: frame_role.h
//
// Says what a function on the stack of a C++ program on libtorch tells about the layer, by its name alone.
#ifndef RFINJECT_INJECTOR_NATIVE_FRAME_ROLE_H_
#define RFINJECT_INJECTOR_NATIVE_FRAME_ROLE_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace rfinject {

struct FrameRole {
  enum class Kind : uint8_t {
    kNone,
    kModule,         // X::forward
    kHolder,         // torch::nn::AnyModuleHolder<X>::forward, which calls X::forward, or has it inlined
    kOptimizerStep,  // torch::optim::X::step
    kZeroGrad,       // zero_grad of an optimizer or a module
    kData,           // torch::data
  };
  Kind kind = Kind::kNone;
  std::string class_name;  // kModule and kHolder: "Conv2d" for torch::nn::Conv2dImpl
  bool of_torch = false;   // kModule: the class is torch's own
};

// Whether a mangled name may have a role at all. This is a cheap test before demangling.
bool MayHaveRole(std::string_view mangled) noexcept;

// Returns the role of the function with this demangled name: "torch::nn::Conv2dImpl::forward(at::Tensor const&)".
FrameRole RoleOfFunction(std::string_view name);

// Returns `mangled` demangled, or as it is when it is no mangled name or an absurdly long one.
std::string Demangle(const char* mangled);

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_NATIVE_FRAME_ROLE_H_
