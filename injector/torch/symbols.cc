#include "injector/torch/symbols.h"

#include <dlfcn.h>
#include <link.h>

#include <climits>
#include <cstring>

namespace rfinject {
namespace {

struct Wanted {
  const char* prefix;
  char path[PATH_MAX];
};

// This runs with the loader's lock held, so it only copies.
int CopyPathOf(dl_phdr_info* info, size_t, void* data) {
  auto* wanted = static_cast<Wanted*>(data);
  if (info->dlpi_name == nullptr) return 0;
  const char* slash = strrchr(info->dlpi_name, '/');
  const char* base = slash != nullptr ? slash + 1 : info->dlpi_name;
  if (strncmp(base, wanted->prefix, strlen(wanted->prefix)) != 0) return 0;
  if (strlen(info->dlpi_name) >= sizeof(wanted->path)) return 0;
  strcpy(wanted->path, info->dlpi_name);
  return 1;
}

}  // namespace

void* OpenLoaded(const char* prefix, std::string* path) {
  Wanted wanted{.prefix = prefix, .path = {}};
  if (dl_iterate_phdr(CopyPathOf, &wanted) == 0) return nullptr;
  if (path != nullptr) *path = wanted.path;
  return dlopen(wanted.path, RTLD_LAZY | RTLD_NOLOAD);
}

namespace {

class Binder {
 public:
  Binder(void* library, std::string* missing) : library_(library), missing_(missing) {}

  template <typename T>
  void Bind(const char* name, const char* readable, T** target) {
    void* address = library_ != nullptr ? dlsym(library_, name) : nullptr;
    *target = reinterpret_cast<T*>(address);
    if (address != nullptr) return;
    if (!missing_->empty()) *missing_ += ", ";
    *missing_ += readable;
  }

 private:
  void* library_;
  std::string* missing_;
};

}  // namespace

bool FindTorchSymbols(TorchSymbols* symbols) {
  *symbols = {};
  void* torch = OpenLoaded("libtorch_cpu.so", &symbols->path);
  if (torch == nullptr) return false;
  Binder cpu(torch, &symbols->missing);
  cpu.Bind("_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE", "at::addGlobalCallback",
           &symbols->add_global_callback);
  cpu.Bind("_ZN2at22addThreadLocalCallbackENS_22RecordFunctionCallbackE", "at::addThreadLocalCallback",
           &symbols->add_thread_local_callback);
  cpu.Bind("_ZN2at14removeCallbackEm", "at::removeCallback", &symbols->remove_callback);
  cpu.Bind("_ZNK2at14RecordFunction4nameEv", "at::RecordFunction::name", &symbols->record_name);
  cpu.Bind("_ZNK2at14RecordFunction10num_inputsEv", "at::RecordFunction::num_inputs", &symbols->record_input_count);
  cpu.Bind("_ZNK2at14RecordFunction11num_outputsEv", "at::RecordFunction::num_outputs",
           &symbols->record_output_count);
  cpu.Bind("_ZN2at15sequence_number4peekEv", "at::sequence_number::peek", &symbols->peek);
  cpu.Bind("_ZN2at14RecordFunction15currentThreadIdEv", "at::RecordFunction::currentThreadId", &symbols->thread_id);
  // Torch 1.13 has only assign_parent, and get_current_node does not count as missing there.
  // get_current_graph_task_id also came with torch 2. A later release that has it but no get_current_node is not
  // asked by assign_parent, which may do something else there.
  const bool old = dlsym(torch, "_ZN5torch8autograd16get_current_nodeEv") == nullptr &&
                   dlsym(torch, "_ZN5torch8autograd25get_current_graph_task_idEv") == nullptr;
  if (old) {
    symbols->assign_parent =
        reinterpret_cast<void (*)(void*)>(dlsym(torch, "_ZN5torch8autograd4Node13assign_parentEv"));
  }
  if (symbols->assign_parent == nullptr) {
    cpu.Bind("_ZN5torch8autograd16get_current_nodeEv", "torch::autograd::get_current_node", &symbols->current_node);
  }
  cpu.Bind("_ZN5torch8autograd32get_current_graph_task_exec_infoEv",
           "torch::autograd::get_current_graph_task_exec_info", &symbols->engine_task);
  const auto optional = [torch]<typename T>(const char* name, T** target) {
    *target = reinterpret_cast<T*>(dlsym(torch, name));
  };
  optional("_ZN5torch8profiler4impl15profilerEnabledEv", &symbols->profiler_enabled);
  optional("_ZN2at8autocast19is_autocast_enabledEN3c1010DeviceTypeE", &symbols->autocast.of_device);
  optional("_ZN2at8autocast14is_cpu_enabledEv", &symbols->autocast.cpu);
  optional("_ZN2at8autocast10is_enabledEv", &symbols->autocast.cuda);
  // Debian and PyPI put c10 into a library of its own.
  void* c10 = OpenLoaded("libc10.so", nullptr);
  if (c10 == nullptr) c10 = torch;
  symbols->torch = torch;
  symbols->c10 = c10;
  Binder core(c10, &symbols->missing);
  core.Bind("_ZN3c108GradMode10is_enabledEv", "c10::GradMode::is_enabled", &symbols->grad_enabled);
  constexpr char kUndefined[] = "_ZN3c1019UndefinedTensorImpl10_singletonE";
  // A C++ program that was linked with it may have a copy of its own (R_X86_64_COPY), which all then use.
  symbols->undefined_tensor = dlsym(RTLD_DEFAULT, kUndefined);
  if (symbols->undefined_tensor == nullptr) {
    core.Bind(kUndefined, "c10::UndefinedTensorImpl::_singleton", &symbols->undefined_tensor);
  }
  return true;
}

}  // namespace rfinject
