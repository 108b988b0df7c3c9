// File: stubs.h
//
// Definitions of the functions that the tables beside this file list. Each says its name and fails with what its type
// has for that. They are weak: a function that is carried out is defined elsewhere in the same library, and replaces
// the one here. A caller's arguments are neither read nor written.
//
//   #define RFINJECT_NOT_SUPPORTED 801
//   #include "virtual_gpu/symbols/cuda.inc"
//   #undef RFINJECT_NOT_SUPPORTED
#ifndef RFINJECT_VIRTUAL_GPU_SYMBOLS_STUBS_H_
#define RFINJECT_VIRTUAL_GPU_SYMBOLS_STUBS_H_

#include "virtual_gpu/virtual_gpu.h"

#define RFINJECT_STUB extern "C" __attribute__((weak, visibility("default")))

namespace rfinject::virtual_gpu {

// Structs that functions return, in the forms of the headers: cuComplex, cuDoubleComplex, CUfileError_t,
// cudaChannelFormatDesc. The headers themselves are not read here, because they declare the parameters, too.
struct StubComplex {
  float x, y;
};
struct StubDoubleComplex {
  double x, y;
};
struct StubFileStatus {
  int own, driver;
};
struct StubChannels {
  int x, y, z, w, kind;
};

constexpr const char* kStubText = "not supported on rfinject's virtual GPU";

// Returns `status`, after one line that names the function.
inline int StubMissing(const char* name, int status) { return rfinject_virtual_gpu_missing(name, status); }

}  // namespace rfinject::virtual_gpu

// SYMBOL(kind, name): the kinds are those of read_headers.py.
#define SYMBOL(kind, name) RFINJECT_STUB_##kind(name)

// RFINJECT_STUB_MISSING(name, status) reports the name and returns the status.
#define RFINJECT_STUB_MISSING ::rfinject::virtual_gpu::StubMissing
#define RFINJECT_STUB_Status(name) \
  RFINJECT_STUB int name() { return RFINJECT_STUB_MISSING(#name, RFINJECT_NOT_SUPPORTED); }
#define RFINJECT_STUB_VALUE(type, name, ...)              \
  RFINJECT_STUB type name() {                             \
    RFINJECT_STUB_MISSING(#name, RFINJECT_NOT_SUPPORTED); \
    return __VA_ARGS__;                                   \
  }
#define RFINJECT_STUB_Nothing(name) RFINJECT_STUB_VALUE(void, name, static_cast<void>(0))
#define RFINJECT_STUB_Text(name) RFINJECT_STUB_VALUE(const char*, name, ::rfinject::virtual_gpu::kStubText)
#define RFINJECT_STUB_Pointer(name) RFINJECT_STUB_VALUE(void*, name, nullptr)
#define RFINJECT_STUB_Number(name) RFINJECT_STUB_VALUE(long, name, 0)
// Of cuFile: how many bytes; a negative number is an error.
#define RFINJECT_STUB_Count(name) RFINJECT_STUB_VALUE(long, name, -(RFINJECT_NOT_SUPPORTED))
#define RFINJECT_STUB_Float(name) RFINJECT_STUB_VALUE(float, name, 0)
#define RFINJECT_STUB_Double(name) RFINJECT_STUB_VALUE(double, name, 0)
#define RFINJECT_STUB_Complex(name) RFINJECT_STUB_VALUE(::rfinject::virtual_gpu::StubComplex, name, {})
#define RFINJECT_STUB_DoubleComplex(name) RFINJECT_STUB_VALUE(::rfinject::virtual_gpu::StubDoubleComplex, name, {})
#define RFINJECT_STUB_Channels(name) RFINJECT_STUB_VALUE(::rfinject::virtual_gpu::StubChannels, name, {})
#define RFINJECT_STUB_FileStatus(name) \
  RFINJECT_STUB_VALUE(::rfinject::virtual_gpu::StubFileStatus, name, {RFINJECT_NOT_SUPPORTED, 0})

#endif  // RFINJECT_VIRTUAL_GPU_SYMBOLS_STUBS_H_
