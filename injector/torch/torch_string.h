// File: torch_string.h
//
// Names as torch's functions want them: std::strings of its C++ library, which is not always ours.
#ifndef RFINJECT_INJECTOR_TORCH_TORCH_STRING_H_
#define RFINJECT_INJECTOR_TORCH_TORCH_STRING_H_

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rfinject {

// Two std::strings that torch may want: that of its C++ library, or the one from before C++11, whose pointer has its
// length, its capacity and a count in front of it.
struct NewString {
  const char* text;
  size_t length;
  char inside[16];
};
struct OldString {
  size_t length, capacity;
  int64_t owners;  // an int and the padding behind it
  char text[64];
};
static_assert(offsetof(OldString, text) == 24);

// A std::string of torch's with a name in it, for functions that only read it. Never destroyed as one.
class TorchString {
 public:
  TorchString(std::string_view text, bool old) : old_(old) {
    text.copy(old_string_.text, sizeof old_string_.text - 1);
    const size_t length = std::min(text.size(), sizeof old_string_.text - 1);
    old_string_.length = old_string_.capacity = length;
    pointer_ = old_string_.text;
    new_string_ = {old_string_.text, length, {}};
  }
  TorchString(const TorchString&) = delete;
  TorchString& operator=(const TorchString&) = delete;

  const void* get() const { return old_ ? static_cast<const void*>(&pointer_) : &new_string_; }
  size_t size() const { return old_ ? sizeof pointer_ : sizeof new_string_; }

 private:
  bool old_;
  OldString old_string_ = {0, 0, 0, {}};
  const char* pointer_;
  NewString new_string_ = {};
};

// Whether this torch has the std::string from before C++11.
inline bool HasOldStrings(void* c10) { return dlsym(c10, "_ZN3c1016parseDispatchKeyERKSs") != nullptr; }

// Returns the number of a dispatch key by its name, 0 where torch has no such function.
inline uint16_t KeyNumber(void* c10, std::string_view name) {
  using Parse = uint16_t (*)(const void*);
  const bool old = HasOldStrings(c10);
  const auto parse = reinterpret_cast<Parse>(
      dlsym(c10, old ? "_ZN3c1016parseDispatchKeyERKSs"
                     : "_ZN3c1016parseDispatchKeyERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"));
  return parse != nullptr ? parse(TorchString(name, old).get()) : uint16_t{0};
}

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_TORCH_TORCH_STRING_H_
