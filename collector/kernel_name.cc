#include "collector/kernel_name.h"

#include <cxxabi.h>

#include <cstdlib>
#include <cstring>
#include <memory>

namespace rfinject {

std::string ReadableKernelName(const char* name) {
  // Other names would be read as types: "f" is a float.
  if (std::strncmp(name, "_Z", 2) != 0) return name;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> readable(::abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                                             &std::free);
  return status == 0 && readable != nullptr ? readable.get() : name;
}

}  // namespace rfinject
