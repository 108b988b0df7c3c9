// File: device_bytes.h
//
// What a device's memory holds, in as few bytes as it takes: only what the host wrote can be anything but zeros.
#ifndef RFINJECT_VIRTUAL_GPU_LIBRARIES_DEVICE_BYTES_H_
#define RFINJECT_VIRTUAL_GPU_LIBRARIES_DEVICE_BYTES_H_

#include <stddef.h>

#include <string>
#include <string_view>

namespace rfinject::virtual_gpu {

// The most that is carried of one buffer. Programs compare sizes, seeds and flags; a model's weights and gradients
// would be as meaningless on the other side as they are here, and would take their time.
constexpr size_t kMostBytesCarried = 4 << 20;

// A text that UnpackDeviceBytes makes the same bytes of. Of a buffer with more than kMostBytesCarried of what the
// host wrote, nothing is carried: it arrives as zeros.
std::string PackDeviceBytes(const void* device, size_t bytes);

// Writes what was packed to `bytes` of a device's memory, and zeros where nothing was. False for a damaged text.
bool UnpackDeviceBytes(std::string_view packed, void* device, size_t bytes);

// The same for memory of the host, which holds zeros already.
bool UnpackToHost(std::string_view packed, char* host, size_t bytes);

// Whether nothing but zeros was packed.
bool IsZeros(std::string_view packed);

}  // namespace rfinject::virtual_gpu

#endif  // RFINJECT_VIRTUAL_GPU_LIBRARIES_DEVICE_BYTES_H_
