// File: sanitizer_dlopen.cc
//
// For tests under a sanitizer: libcupti opens libnvperf_host.so with RTLD_DEEPBIND, which the sanitizers' dlopen
// refuses by ending the process. This dlopen, which is found before theirs, takes the flag away.
#include <dlfcn.h>

extern "C" __attribute__((visibility("default"))) void* dlopen(const char* path, int flags) noexcept {
  using Dlopen = void* (*)(const char*, int);
  static Dlopen next = reinterpret_cast<Dlopen>(dlsym(RTLD_NEXT, "dlopen"));
  return next(path, flags & ~RTLD_DEEPBIND);
}
