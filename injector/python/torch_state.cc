#include "injector/python/torch_state.h"

#include <unistd.h>

#include <cstring>
#include <string>
#include <utility>

namespace rfinject {
namespace {

// Functions of torch._C; any of them may be missing (empty Ref).
struct Functions {
  Ref cublas_tf32, cudnn_tf32, cudnn_benchmark, cudnn_deterministic;
  Ref fp32_precision;  // torch 2.9+: reading the older flags there warns, and fails where the program uses this one
  Ref autocast_enabled, autocast_dtype;  // 2.4+ take a device type; before: for CUDA
  bool autocast_takes_device = false;
  Ref cpu_autocast_enabled, cpu_autocast_dtype;  // before 2.4
  Ref grad_enabled;
  Ref graph_task;
  Ref get_tracing_state, set_tracing_state;
  Ref disable_torch_function;
};

const PythonApi* g_state_python = nullptr;
Functions* g_functions = nullptr;
std::string* g_autocast_seen = nullptr;

Ref Text(const char* text) { return Ref(*g_state_python, g_state_python->PyUnicode_FromString(text)); }

uint32_t FromBool(const Ref& value) {
  if (!value) return Tristate::kUnknown;
  return value.IsTrue() ? Tristate::kOn : Tristate::kOff;
}

// torch 2.9+: a precision per backend and operation. The getter itself asks the backend's and then the generic one
// where the operation's is "none", so "none" is full precision: also for convolutions, whose default is "tf32" and
// whose older flag says "none" where the program turns it off.
uint32_t Fp32Precision(const char* operation) {
  const std::string precision = g_functions->fp32_precision.Call({Text("cuda").get(), Text(operation).get()}).Text();
  if (precision.empty()) return Tristate::kUnknown;
  return precision == "tf32" ? Tristate::kOn : Tristate::kOff;
}

std::string StripTorchPrefix(std::string name) {
  constexpr const char kPrefix[] = "torch.";
  return name.compare(0, sizeof kPrefix - 1, kPrefix) == 0 ? name.substr(sizeof kPrefix - 1) : name;
}

}  // namespace

void InitTorchState(const PythonApi& python) {
  if (g_functions != nullptr) return;
  g_state_python = &python;
  g_functions = new Functions;
  g_autocast_seen = new std::string;
  Ref core = ImportedModule(python, "torch._C");
  Functions& f = *g_functions;
  f.fp32_precision = core.Attribute("_get_fp32_precision_getter");
  f.cublas_tf32 = core.Attribute("_get_cublas_allow_tf32");
  f.cudnn_tf32 = core.Attribute("_get_cudnn_allow_tf32");
  f.cudnn_benchmark = core.Attribute("_get_cudnn_benchmark");
  f.cudnn_deterministic = core.Attribute("_get_cudnn_deterministic");
  f.autocast_enabled = core.Attribute("is_autocast_enabled");
  f.autocast_dtype = core.Attribute("get_autocast_dtype");
  f.autocast_takes_device = static_cast<bool>(f.autocast_dtype);
  if (!f.autocast_takes_device) {
    f.autocast_dtype = core.Attribute("get_autocast_gpu_dtype");
    f.cpu_autocast_enabled = core.Attribute("is_autocast_cpu_enabled");
    f.cpu_autocast_dtype = core.Attribute("get_autocast_cpu_dtype");
  }
  f.grad_enabled = core.Attribute("is_grad_enabled");
  f.graph_task = core.Attribute("_current_graph_task_id");
  f.get_tracing_state = core.Attribute("_get_tracing_state");
  f.set_tracing_state = core.Attribute("_set_tracing_state");
  f.disable_torch_function = core.Attribute("DisableTorchFunction");
}

RunFacts ReadVersions() {
  RunFacts run;
  ProcessFacts& facts = run.process;
  const char* version = g_state_python->Py_GetVersion();
  facts.python_version.assign(version, std::strcspn(version, " "));
  facts.python_executable = ImportedModule(*g_state_python, "sys").Attribute("executable").Text();
  Ref torch = ImportedModule(*g_state_python, "torch");
  facts.torch_version = torch.Attribute("__version__").Text();
  Ref cuda = torch.Attribute("version").Attribute("cuda");
  if (cuda && !cuda.IsNone()) facts.cuda_version = cuda.Text();
  facts.torchvision_version = ImportedModule(*g_state_python, "torchvision").Attribute("__version__").Text();
  // The version that torch was compiled for: asking for the one at run time loads another library of cuDNN.
  Ref cudnn = ImportedModule(*g_state_python, "torch._C").Attribute("_cudnn");
  for (const Ref& number : cudnn.Attribute("getCompileVersion").Call().Parts()) {
    if (!facts.cudnn_version.empty()) facts.cudnn_version += '.';
    facts.cudnn_version += number.Text();
  }
  return run;
}

bool HasCuptiPython() {
  // Where it is looked for, the finders of the import system may run code of the program's.
  for (const Ref& folder : ImportedModule(*g_state_python, "sys").Attribute("path").Parts()) {
    const std::string path = folder.Text();
    if (!path.empty() && access((path + "/cupti/cupti.pyi").c_str(), F_OK) == 0) return true;
  }
  return false;
}

PolicyFacts ReadPolicy() {
  const Functions& f = *g_functions;
  PolicyFacts policy;
  if (f.fp32_precision) {
    policy.matmul_tf32 = Fp32Precision("matmul");
    policy.cudnn_tf32 = Fp32Precision("conv");
  } else {
    policy.matmul_tf32 = FromBool(f.cublas_tf32.Call());
    policy.cudnn_tf32 = FromBool(f.cudnn_tf32.Call());
  }
  policy.cudnn_benchmark = FromBool(f.cudnn_benchmark.Call());
  policy.cudnn_deterministic = FromBool(f.cudnn_deterministic.Call());
  // The estimator stands for a GPU, while the program may run on the CPU, under the CPU's autocast.
  for (const char* device : {"cuda", "cpu"}) {
    Ref enabled, dtype;
    if (f.autocast_takes_device) {
      Ref name = Text(device);
      enabled = f.autocast_enabled.Call({name.get()});
      dtype = f.autocast_dtype.Call({name.get()});
    } else {
      const bool cpu = std::strcmp(device, "cpu") == 0;
      enabled = (cpu ? f.cpu_autocast_enabled : f.autocast_enabled).Call();
      dtype = (cpu ? f.cpu_autocast_dtype : f.autocast_dtype).Call();
    }
    if (!enabled.IsTrue()) continue;
    const std::string text = StripTorchPrefix(dtype.Text());
    if (text.empty() || ('+' + *g_autocast_seen + '+').find('+' + text + '+') != std::string::npos) continue;
    if (!g_autocast_seen->empty()) *g_autocast_seen += '+';
    *g_autocast_seen += text;
  }
  policy.autocast_dtype = *g_autocast_seen;
  return policy;
}

bool GradEnabled() { return g_functions->grad_enabled.Call().IsTrue(); }

bool InBackward() { return g_functions->graph_task && g_functions->graph_task.Call().Integer(-1) != -1; }

bool Tracing() {
  Ref state = g_functions->get_tracing_state.Call();
  return state && !state.IsNone();
}

bool InDataLoaderWorker() {
  Ref info = ImportedModule(*g_state_python, "torch.utils.data._utils.worker").Attribute("_worker_info");
  return info && !info.IsNone();
}

bool OptimizerExists() {
  // Optimizer.__init__ wraps the class's step for the profiler and marks it `hooked`, in every torch since 1.8.
  Ref base = ImportedModule(*g_state_python, "torch.optim.optimizer").Attribute("Optimizer");
  Ref classes = base.Attribute("__subclasses__").Call();
  if (!classes) return false;
  // The walk is breadth first. A class is in the list once for each base that it has there, which does no harm.
  for (Py_ssize_t i = 0; i < g_state_python->PyList_Size(classes.get()) && i < 1000; ++i) {
    Ref type = Ref::Borrow(*g_state_python, g_state_python->PyList_GetItem(classes.get(), i));
    // A class that is no optimizer of torch's may have anything there.
    Ref step = type.InClass("step");
    if (step.IsInstance(g_state_python->PyFunction_Type) && step.Attribute("hooked").IsTrue()) return true;
    Ref more = type.OfClass("__subclasses__").Call();
    if (more) more = classes.Attribute("extend").Call({more.get()});
  }
  return false;
}

QuietTorch::QuietTorch() {
  Ref state = g_functions->get_tracing_state.Call();
  if (state && !state.IsNone() && g_functions->set_tracing_state) {
    g_functions->set_tracing_state.Call({static_cast<PyObject*>(g_state_python->_Py_NoneStruct)});
    tracing_state_ = std::move(state);
  }
  guard_ = g_functions->disable_torch_function.Call();
  guard_.Attribute("__enter__").Call();
}

QuietTorch::~QuietTorch() {
  auto* none = static_cast<PyObject*>(g_state_python->_Py_NoneStruct);
  guard_.Attribute("__exit__").Call({none, none, none});
  if (tracing_state_) g_functions->set_tracing_state.Call({tracing_state_.get()});
}

SavedTensorsUnheard::SavedTensorsUnheard(const PythonApi& python) {
  const Ref core = ImportedModule(python, "torch._C._autograd");
  pop_ = core.Attribute("_pop_saved_tensors_default_hooks");
  std::string error;
  const Ref same = RunPython(python, "same = lambda tensor: tensor", &error).Item("same");
  if (same) pushed_ = core.Attribute("_push_saved_tensors_default_hooks").Call({same.get(), same.get()});
}

SavedTensorsUnheard::~SavedTensorsUnheard() {
  if (pushed_) pop_.Call();
}

DynamoAsleep::DynamoAsleep(const PythonApi& python) {
  if (!ImportedModule(python, "torch._dynamo.eval_frame")) return;
  // Not each torch's Python module has the function, too.
  set_ = ImportedModule(python, "torch._C").Attribute("_dynamo").Attribute("eval_frame").Attribute("set_eval_frame");
  before_ = set_.Call({static_cast<PyObject*>(python._Py_NoneStruct)});
}

DynamoAsleep::~DynamoAsleep() { set_.Call({before_.get()}); }

}  // namespace rfinject
