// NVRTC: any program compiles; the resulting image names no kernel and fits every one (driver/image.cc takes any name
// in an image that it cannot read). PyTorch compiles a few special functions with it, and fused kernels of
// TorchScript.
#include <cuda_runtime_api.h>
#include <nvrtc.h>
#include <string.h>

#include <deque>
#include <string>

#include "virtual_gpu/libraries/launch.h"

using namespace rfinject::virtual_gpu;

struct _nvrtcProgram {
  std::deque<std::string> names;  // a deque: their addresses are given away
};

namespace {

// The beginning of a PTX file, by which the driver recognises it.
constexpr char kImage[] = "// virtual GPU: a program that was not compiled\n";

nvrtcResult Copy(char* to) {
  memcpy(to, kImage, sizeof kImage);
  return NVRTC_SUCCESS;
}
nvrtcResult Size(size_t* bytes) { return Set(bytes, sizeof kImage); }

}  // namespace

RFINJECT_STANDIN nvrtcResult nvrtcVersion(int* major, int* minor) {
  *major = CUDART_VERSION / 1000;
  *minor = CUDART_VERSION % 1000 / 10;
  return NVRTC_SUCCESS;
}
RFINJECT_STANDIN const char* nvrtcGetErrorString(nvrtcResult result) {
  return result == NVRTC_SUCCESS ? "NVRTC_SUCCESS" : "NVRTC_ERROR_INTERNAL_ERROR";
}
RFINJECT_STANDIN nvrtcResult nvrtcCreateProgram(nvrtcProgram* program, const char*, const char*, int,
                                                const char* const*, const char* const*) {
  return Set(program, new _nvrtcProgram);
}
RFINJECT_STANDIN nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
  delete *program;
  *program = nullptr;
  return NVRTC_SUCCESS;
}
RFINJECT_STANDIN nvrtcResult nvrtcCompileProgram(nvrtcProgram, int, const char* const*) { return NVRTC_SUCCESS; }
RFINJECT_STANDIN nvrtcResult nvrtcAddNameExpression(nvrtcProgram, const char* const) { return NVRTC_SUCCESS; }
RFINJECT_STANDIN nvrtcResult nvrtcGetLoweredName(nvrtcProgram program, const char* const expression,
                                                 const char** name) {
  program->names.emplace_back(expression);
  *name = program->names.back().c_str();
  return NVRTC_SUCCESS;
}
RFINJECT_STANDIN nvrtcResult nvrtcGetPTX(nvrtcProgram, char* to) { return Copy(to); }
RFINJECT_STANDIN nvrtcResult nvrtcGetPTXSize(nvrtcProgram, size_t* bytes) { return Size(bytes); }
RFINJECT_STANDIN nvrtcResult nvrtcGetCUBIN(nvrtcProgram, char* to) { return Copy(to); }
RFINJECT_STANDIN nvrtcResult nvrtcGetCUBINSize(nvrtcProgram, size_t* bytes) { return Size(bytes); }
RFINJECT_STANDIN nvrtcResult nvrtcGetProgramLog(nvrtcProgram, char* log) { return Set(log, '\0'); }
RFINJECT_STANDIN nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram, size_t* bytes) { return Set(bytes, 1); }
