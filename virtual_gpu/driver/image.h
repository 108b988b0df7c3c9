// File: image.h
//
// Chooses the image of a fat binary that a device takes, and reads what it says of the program's own kernels:
// registers, shared memory and the limits on a block. From these follow occupancy, and some grids. Nothing of a
// kernel's code is read. The container's layout (fatbinary_section.h) and the notes of its ELF files are those that
// the compiler of the program wrote; only images that the program itself registers or loads come here, none of
// NVIDIA's libraries.
#ifndef RFINJECT_VIRTUAL_GPU_DRIVER_IMAGE_H_
#define RFINJECT_VIRTUAL_GPU_DRIVER_IMAGE_H_

#include <stddef.h>
#include <stdint.h>

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace rfinject::virtual_gpu {

struct KernelInfo {
  int registers = 32;
  int max_threads = 1024;
  int static_shared_bytes = 0;
  std::vector<std::pair<uint32_t, uint32_t>> parameters;  // offset and size, by position
};

struct Image {
  int sm = 0;               // that it was compiled for
  bool parsed = false;      // kernels and variables are complete; otherwise any name is taken for a kernel's
  bool other_chip = false;  // no image fits the device: the nearest one was taken
  std::unordered_map<std::string, KernelInfo> kernels;
  std::unordered_map<std::string, size_t> variables;  // with their sizes in bytes
};

// Reads what cuModuleLoadData and cuLibraryLoadData are given: a fat binary with or without its wrapper, an ELF file,
// or PTX text. `sm` is the device's, 80 for 8.0. Returns false when it is none of these.
bool ReadImage(const void* data, int sm, Image* image);

}  // namespace rfinject::virtual_gpu

#endif  // RFINJECT_VIRTUAL_GPU_DRIVER_IMAGE_H_
