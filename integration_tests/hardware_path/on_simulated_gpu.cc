// Runs a C++ program on libtorch on a GPU that is not there, as site/sitecustomize.py does with programs in Python:
//
//     on_simulated_gpu TORCH_LIBRARIES PROGRAM.so [ARGUMENT...]
//
// The program is a shared object, since libtorch must not be loaded before the virtual GPU is there.
// RFX_SIM_LIBRARIES is the folder of the virtual GPU, RFX_SIM_FOLDER that of the simulated CUPTI, RFX_SIM_CUPTI which
// of them.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "virtual_gpu/virtual_gpu.h"

namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

void* Open(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) std::fprintf(stderr, "%s\n", dlerror()), std::exit(2);
  return library;
}

template <typename Function>
Function* Find(void* library, const char* name) {
  void* const found = dlsym(library, name);
  if (found == nullptr) std::fprintf(stderr, "%s\n", dlerror()), std::exit(2);
  return reinterpret_cast<Function*>(found);
}

void OrEnd(const char* why) {
  if (why != nullptr) std::fprintf(stderr, "no virtual GPU: %s\n", why), std::exit(2);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string libraries = Variable("RFX_SIM_LIBRARIES"), folder = Variable("RFX_SIM_FOLDER");
  Open(folder + "/" + Variable("RFX_SIM_CUPTI"));
  const rfinject_virtual_board board{.name = "Simulated A100",
                                     .devices = 1,
                                     .cc_major = 8,
                                     .cc_minor = 0,
                                     .sm_count = 108,
                                     .memory_bytes = 40ull << 30,
                                     .l2_bytes = 40ull << 20,
                                     .sm_hz = 1.41e9,
                                     .dram_bytes_per_s = 1.5e12,
                                     .pcie_bytes_per_s = 25e9,
                                     .quiet = 1,
                                     .computes = 0};
  void* const gpu = Open(libraries + "/librfinject_virtual_gpu.so");
  OrEnd(Find<const char*(const char*, const rfinject_virtual_board*)>(gpu, "rfinject_virtual_gpu_enter")(argv[1],
                                                                                                         &board));
  void* const world = Open(folder + "/libsim_virtual_driver.so");
  OrEnd(Find<const char*(uint64_t, double)>(world, "sim_attach_virtual_gpu")(1, 0.02));
  return Find<int(int, char**)>(Open(argv[2]), "main")(argc - 2, argv + 2);
}
