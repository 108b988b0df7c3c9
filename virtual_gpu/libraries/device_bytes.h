// File: device_bytes.h
//
// Packs what a device's memory holds into few bytes: only what the host wrote can be anything but zeros.
#ifndef RFINJECT_VIRTUAL_GPU_LIBRARIES_DEVICE_BYTES_H_
#define RFINJECT_VIRTUAL_GPU_LIBRARIES_DEVICE_BYTES_H_

#include <stddef.h>

#include <string>
#include <string_view>

namespace rfinject::virtual_gpu {

// The most bytes that are carried of one buffer where values are not computed. Programs compare sizes, seeds and
// flags; a model's weights and gradients would be as meaningless on the other side as they are here, and would take
// long.
constexpr size_t kMostBytesCarried = 4 << 20;

// Returns a text that UnpackDeviceBytes turns into the same bytes. If the host wrote more than kMostBytesCarried of a
// buffer, and values are not computed, nothing of it is carried: it arrives as zeros.
std::string PackDeviceBytes(const void* device, size_t bytes);

// Writes what was packed to `bytes` of a device's memory, and zeros elsewhere. Returns false for a damaged text.
bool UnpackDeviceBytes(std::string_view packed, void* device, size_t bytes);

// The same for memory of the host, which holds zeros already.
bool UnpackToHost(std::string_view packed, char* host, size_t bytes);

// Whether nothing but zeros was packed.
bool IsZeros(std::string_view packed);

}  // namespace rfinject::virtual_gpu

#endif  // RFINJECT_VIRTUAL_GPU_LIBRARIES_DEVICE_BYTES_H_
