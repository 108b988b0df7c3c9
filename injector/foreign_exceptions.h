// File: foreign_exceptions.h
//
// Exceptions of the program's that pass through functions of ours, or end in them: an operator's CPU kernel throws,
// or a thread is ended (pthread_exit) below a call of ours.
//
// The C++ runtime in this library is our own. What unwinds such an exception is the program's runtime; what it asks
// about our functions is ours:
//
//   PrepareForForeignExceptions();  // once, before anything can pass
//   if (!catcher.Completes([&] { kernel(...); })) ...  // it threw
#ifndef RFINJECT_INJECTOR_FOREIGN_EXCEPTIONS_H_
#define RFINJECT_INJECTOR_FOREIGN_EXCEPTIONS_H_

#include <dlfcn.h>

#include <exception>

namespace rfinject {

// Our unwinder fills its table of registers when it first throws, and aborts the process where it is asked before. So
// this throws.
inline void PrepareForForeignExceptions() noexcept {
  try {
    throw std::exception();
  } catch (const std::exception&) {
    return;
  }
}

class ForeignExceptions {
 public:
  // `library` is a handle of dlopen's of a library that is linked with the C++ runtime that throws. Returns false
  // where that runtime lacks what the C++ ABI asks for.
  bool Init(void* library) noexcept {
    globals_ = reinterpret_cast<decltype(globals_)>(dlsym(library, "__cxa_get_globals"));
    return globals_ != nullptr;
  }

  // Runs `call`. Returns false when it throws.
  template <typename Call>
  bool Completes(const Call& call) const noexcept {
    // The exception counts as on its way (std::uncaught_exceptions) in the runtime that threw it until that runtime
    // catches it, which ours does instead.
    unsigned* const on_their_way = &globals_()->on_their_way;
    const unsigned before = *on_their_way;
    try {
      call();
      return true;
    } catch (...) {
      *on_their_way = before;
      return false;
    }
  }

 private:
  struct Globals {  // __cxa_eh_globals of the Itanium C++ ABI, section 2.2.2
    void* caught;
    unsigned on_their_way;
  };
  Globals* (*globals_)() = nullptr;
};

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_FOREIGN_EXCEPTIONS_H_
