// Names of errors, in the words of CUDA's documentation (cuda.h, enum cudaError_enum).
#include "virtual_gpu/driver/state.h"

namespace {

struct Error {
  CUresult code;
  const char* name;
  const char* text;
};
#define ERROR(code, text) \
  { code, #code, text }
constexpr Error kErrors[] = {
    ERROR(CUDA_SUCCESS, "no error"),
    ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    ERROR(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    ERROR(CUDA_ERROR_UNSUPPORTED_LIMIT, "limit is not supported on this architecture"),
    ERROR(CUDA_ERROR_INVALID_SOURCE, "device kernel image is invalid"),
    ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    ERROR(CUDA_ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state"),
    ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    ERROR(CUDA_ERROR_NOT_READY, "device not ready"),
    ERROR(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    ERROR(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "part or all of the requested memory range is already mapped"),
    ERROR(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "pointer does not correspond to a registered memory region"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "operation failed due to a previous error during capture"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "operation would result in a merge of separate capture sequences"),
    ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
};
#undef ERROR

const Error* Find(CUresult code) {
  for (const Error& error : kErrors) {
    if (error.code == code) return &error;
  }
  return nullptr;
}

}  // namespace

RFINJECT_CUDA cuGetErrorName(CUresult code, const char** name) {
  const Error* error = Find(code);
  *name = error != nullptr ? error->name : nullptr;
  return error != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

RFINJECT_CUDA cuGetErrorString(CUresult code, const char** text) {
  const Error* error = Find(code);
  *text = error != nullptr ? error->text : nullptr;
  return error != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Lines of the driver's log are told to callbacks; this driver writes none.
#if CUDA_VERSION >= 12090
RFINJECT_CUDA cuLogsRegisterCallback(CUlogsCallback, void*, CUlogsCallbackHandle* handle) {
  static char one;
  if (handle != nullptr) *handle = reinterpret_cast<CUlogsCallbackHandle>(&one);
  return CUDA_SUCCESS;
}
RFINJECT_CUDA cuLogsUnregisterCallback(CUlogsCallbackHandle) { return CUDA_SUCCESS; }
#endif
