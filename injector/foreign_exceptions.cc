#include "injector/foreign_exceptions.h"

#include <dlfcn.h>

#include <exception>

namespace rfinject {

void PrepareForForeignExceptions() noexcept {
  try {
    throw std::exception();
  } catch (const std::exception&) {
    return;
  }
}

bool ForeignExceptions::Init(void* library) noexcept {
  globals_ = reinterpret_cast<decltype(globals_)>(dlsym(library, "__cxa_get_globals"));
  return globals_ != nullptr;
}

}  // namespace rfinject
