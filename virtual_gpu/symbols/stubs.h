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

}  // namespace rfinject::virtual_gpu

// SYMBOL(kind, name): the kinds are those of read_headers.py.
#define SYMBOL(kind, name) RFINJECT_STUB_##kind(name)
// A function and its siblings (FORMS in read_headers.py): cublasDsymm_v2_64 is in SYMBOLS_SDCZ_64(…, cublas,
// symm_v2).
#define SYMBOL_64(kind, name) SYMBOL(kind, name) SYMBOL(kind, name##_64)
#define SYMBOL_ptsz(kind, name) SYMBOL(kind, name) SYMBOL(kind, name##_ptsz)
#define SYMBOL_ptds(kind, name) SYMBOL(kind, name) SYMBOL(kind, name##_ptds)
#define SYMBOL_P(kind, name) SYMBOL(kind, name) SYMBOL(kind, p##name)
#define SYMBOLS_SD(kind, before, behind) SYMBOL(kind, before##S##behind) SYMBOL(kind, before##D##behind)
#define SYMBOLS_CZ(kind, before, behind) SYMBOL(kind, before##C##behind) SYMBOL(kind, before##Z##behind)
#define SYMBOLS_SDCZ(kind, before, behind) SYMBOLS_SD(kind, before, behind) SYMBOLS_CZ(kind, before, behind)
#define SYMBOLS_SD_64(kind, before, behind) SYMBOLS_SD(kind, before, behind) SYMBOLS_SD(kind, before, behind##_64)
#define SYMBOLS_CZ_64(kind, before, behind) SYMBOLS_CZ(kind, before, behind) SYMBOLS_CZ(kind, before, behind##_64)
#define SYMBOLS_SDCZ_64(kind, before, behind) \
  SYMBOLS_SDCZ(kind, before, behind) SYMBOLS_SDCZ(kind, before, behind##_64)

// RFINJECT_STUB_MISSING(name, status) reports the name and returns the status.
#define RFINJECT_STUB_MISSING rfinject_virtual_gpu_missing
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
