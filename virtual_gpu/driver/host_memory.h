// File: host_memory.h
//
// How much memory the host has left, for a device whose memory is the host's.
#ifndef RFINJECT_VIRTUAL_GPU_DRIVER_HOST_MEMORY_H_
#define RFINJECT_VIRTUAL_GPU_DRIVER_HOST_MEMORY_H_

#include <stdint.h>

#include <string_view>

namespace rfinject::virtual_gpu {

// How many bytes this process may still be given: the least of what the kernel calls available and what the control
// group has left, without a part that is left to the host. UINT64_MAX where neither can be read.
uint64_t HostBytesLeft();

// The number behind `name` in a text of lines "name 12" or "name: 12 kB", without the unit; UINT64_MAX where there is
// none.
uint64_t NumberOf(std::string_view text, std::string_view name);

}  // namespace rfinject::virtual_gpu

#endif  // RFINJECT_VIRTUAL_GPU_DRIVER_HOST_MEMORY_H_
