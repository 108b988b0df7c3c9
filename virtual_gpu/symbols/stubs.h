// File: stubs.h
//
// Definitions of the functions that the tables beside this file list. Each says its name and fails with what its type
// has for that. They are weak: a function that is carried out is defined elsewhere in the same library, and replaces
// the one here. A caller's arguments are neither read nor written.
//
//   namespace rfinject::virtual_gpu::missing {
//   int cuda(const char* name) { return rfinject_virtual_gpu_missing(name, 801); }  // says it; returns the status
//   }
//   #include "virtual_gpu/symbols/driver.csv.inc"
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

// What the build makes of each row of a table. The kinds are those of read_headers.py.
#define RFINJECT_SYMBOL(library, kind, name) RFINJECT_STUB_##kind(::rfinject::virtual_gpu::missing::library, name)

#define RFINJECT_STUB_Status(missing, name) \
  RFINJECT_STUB int name() { return missing(#name); }
#define RFINJECT_STUB_VALUE(missing, type, name, ...) \
  RFINJECT_STUB type name() {                         \
    missing(#name);                                   \
    return __VA_ARGS__;                               \
  }
#define RFINJECT_STUB_Nothing(missing, name) RFINJECT_STUB_VALUE(missing, void, name, static_cast<void>(0))
#define RFINJECT_STUB_Text(missing, name) \
  RFINJECT_STUB_VALUE(missing, const char*, name, ::rfinject::virtual_gpu::kStubText)
#define RFINJECT_STUB_Pointer(missing, name) RFINJECT_STUB_VALUE(missing, void*, name, nullptr)
#define RFINJECT_STUB_Number(missing, name) RFINJECT_STUB_VALUE(missing, long, name, 0)
// Of cuFile: how many bytes; a negative number is an error.
#define RFINJECT_STUB_Count(missing, name) \
  RFINJECT_STUB long name() { return -missing(#name); }
#define RFINJECT_STUB_Float(missing, name) RFINJECT_STUB_VALUE(missing, float, name, 0)
#define RFINJECT_STUB_Double(missing, name) RFINJECT_STUB_VALUE(missing, double, name, 0)
#define RFINJECT_STUB_Complex(missing, name) \
  RFINJECT_STUB_VALUE(missing, ::rfinject::virtual_gpu::StubComplex, name, {})
#define RFINJECT_STUB_DoubleComplex(missing, name) \
  RFINJECT_STUB_VALUE(missing, ::rfinject::virtual_gpu::StubDoubleComplex, name, {})
#define RFINJECT_STUB_Channels(missing, name) \
  RFINJECT_STUB_VALUE(missing, ::rfinject::virtual_gpu::StubChannels, name, {})
#define RFINJECT_STUB_FileStatus(missing, name) \
  RFINJECT_STUB ::rfinject::virtual_gpu::StubFileStatus name() { return {missing(#name), 0}; }

#endif  // RFINJECT_VIRTUAL_GPU_SYMBOLS_STUBS_H_
