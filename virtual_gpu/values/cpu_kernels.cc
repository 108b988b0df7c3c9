#include "virtual_gpu/values/cpu_kernels.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <iterator>
#include <new>
#include <span>
#include <string_view>

#include "injector/torch/operands.h"
#include "injector/torch/torch_string.h"

namespace rfinject {
namespace {

constexpr int32_t kCpu = 0;
constexpr size_t kMostOperands = 32;

// c10::intrusive_ptr_target begins with its virtual table and the count of its owners, whose low half is 32 bits wide
// in every release.
std::atomic<uint32_t>& Owners(uintptr_t object) { return *reinterpret_cast<std::atomic<uint32_t>*>(object + 8); }

// The exclusion of nothing and the inclusion of nothing: what a thread begins with. Torch's thread-local pair of key
// sets is stored relative to that, so that it is zeros.
class PlainKeys {
 public:
  explicit PlainKeys(void* c10) {
    static constinit thread_local uint64_t* keys = nullptr;
    if (keys == nullptr) keys = static_cast<uint64_t*>(dlsym(c10, "_ZN3c104impl26raw_local_dispatch_key_setE"));
    keys_ = keys;
    std::memcpy(before_, keys_, sizeof before_);
    std::memset(keys_, 0, sizeof before_);
  }
  ~PlainKeys() { std::memcpy(keys_, before_, sizeof before_); }
  PlainKeys(const PlainKeys&) = delete;
  PlainKeys& operator=(const PlainKeys&) = delete;

 private:
  uint64_t* keys_;
  uint64_t before_[2];
};

// The library whose code is at `address`; without data where there is none. dladdr would also look for the symbol,
// which takes 0.1 ms in libtorch.
std::string_view LibraryOf(uintptr_t address) {
  struct Wanted {
    uintptr_t address;
    std::string_view name;
  } wanted = {address, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto* wanted = static_cast<Wanted*>(data);
        const std::span segments(info->dlpi_phdr, info->dlpi_phnum);
        const bool holds = std::ranges::any_of(segments, [&](const ElfW(Phdr) & segment) {
          return segment.p_type == PT_LOAD && wanted->address - info->dlpi_addr - segment.p_vaddr < segment.p_memsz;
        });
        if (holds) wanted->name = info->dlpi_name != nullptr ? info->dlpi_name : "";
        return holds ? 1 : 0;
      },
      &wanted);
  return wanted.name;
}

}  // namespace

// std::optional<c10::OperatorHandle>: the operator's definition, its place in a list, and the flag.
struct CpuKernels::Handle {
  uintptr_t definition;
  uintptr_t place;
  uint8_t found;
  uint8_t unused[7];
};

size_t TensorPlace::span() const {
  if (numel == 0) return 0;
  uint64_t last = 0;
  for (uint64_t i = 0; i < rank; ++i) last += static_cast<uint64_t>((sizes[i] - 1) * strides[i]);
  return (last + 1) * element_bytes;
}

bool TensorPlace::contiguous() const {
  int64_t expected = 1;
  for (uint64_t i = rank; i-- > 0;) {
    if (sizes[i] == 1) continue;
    if (strides[i] != expected) return false;
    expected *= sizes[i];
  }
  return true;
}

bool CpuKernels::Init(const TorchSymbols& symbols, const TorchLayouts& layouts, bool every, const char** why) {
  tensor_ = layouts.tensor;
  value_ = layouts.value;
  c10_ = symbols.c10;
  undefined_ = reinterpret_cast<uintptr_t>(symbols.undefined_tensor);
  bool all = undefined_ != 0;
  const auto bind = [&all](void* library, const char* name, auto* target) {
    *target = reinterpret_cast<std::remove_pointer_t<decltype(target)>>(dlsym(library, name));
    all = all && *target != nullptr;
  };
  void* const torch = symbols.torch;
  bind(torch, "_Znwm", &new_);
  bind(torch, "aoti_torch_create_tensor_from_blob", &make_.alias);
  bind(torch, "aoti_torch_delete_tensor_object", &delete_tensor_);
  bind(torch, "_ZN3c1010Dispatcher13realSingletonEv", &dispatcher_);
  bind(torch, "_ZN3c1010Dispatcher10findSchemaERKNS_12OperatorNameE", &find_schema_);
  bind(torch, "_ZNK2at14RecordFunction13operator_nameEv", &operator_name_);
  bind(torch, "_ZNK3c104impl13OperatorEntry23getKernelForDispatchKeyENS_11DispatchKeyE", &kernel_of_);
  bind(torch, "_ZN2at4_ops5copy_4callERNS_6TensorERKS2_b", &copy_);
  bind(torch, "_ZN2at23isRecordFunctionEnabledEv", &records_);
  bind(torch, "_ZN2at20enableRecordFunctionEb", &record_);
  bind(torch, "_ZN2at6detail18createCPUGeneratorEm", &generators_.make);
  void* cuda = dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
  all = all && cuda != nullptr && dlsym(c10_, "_ZN3c104impl26raw_local_dispatch_key_setE") != nullptr;
  if (cuda != nullptr) {
    bind(cuda, "_ZN2at4cuda6detail23getDefaultCUDAGeneratorEa", &generators_.of_device);
    bind(cuda, "_ZNK2at17CUDAGeneratorImpl12current_seedEv", &generators_.seed);
    bind(cuda, "_ZNK2at17CUDAGeneratorImpl24philox_offset_per_threadEv", &generators_.offset);
    dlclose(cuda);
  }
  // Torch up to 2.6 has no such function.
  make_.handle = reinterpret_cast<decltype(make_.handle)>(dlsym(torch, "aoti_torch_new_tensor_handle"));
  if (every) {
    bind(torch, "aoti_torch_empty_strided", &make_.empty);
    bind(torch, "_ZN3c106detail8ListImplC1ESt6vectorINS_6IValueESaIS3_EENS_4Type24SingletonOrSharedTypePtrIS6_EE",
         &make_.list);
    bind(torch, "_ZN3c108BoolType3getEv", &make_.bool_type);
    bind(c10_, "_ZN3c1012WarningUtils19get_warning_handlerEv", &warnings_.get);
    bind(c10_, "_ZN3c1012WarningUtils19set_warning_handlerEPNS_14WarningHandlerE", &warnings_.set);
    bind(c10_, "_ZN3c108GradMode10is_enabledEv", &gradients_.enabled);
    bind(c10_, "_ZN3c108GradMode11set_enabledEb", &gradients_.enable);
    bind(c10_, "_ZN3c1010TensorImpl12mutable_gradEv", &gradients_.of_tensor);
  }
  all = exceptions_.Init(torch) && all;
  if (!all) {
    *why = "libtorch has not the functions for it";
    return false;
  }
  FindNumbers(every);
  FindSparse(torch, layouts.tensor);
  *why = Check();
  return *why == nullptr;
}

// Finds the numbers of keys and types.
void CpuKernels::FindNumbers(bool every) {
  complex_ = every;
  keys_ = {KeyNumber(c10_, "CPU"), KeyNumber(c10_, "CompositeExplicitAutogradNonFunctional"),
           KeyNumber(c10_, "CompositeExplicitAutograd"), KeyNumber(c10_, "CompositeImplicitAutograd")};
  if (!every) keys_[3] = 0;
  cuda_key_ = KeyNumber(c10_, "CUDA");
  // The bits of these keys lie in the order of their numbers (c10/core/DispatchKeySet.h).
  if (tensor_.zeros_key != 0 && every) {
    const int zeros = KeyNumber(c10_, "ZeroTensor");
    const auto bit = [&](std::string_view name) {
      const int place = std::countr_zero(tensor_.zeros_key) + KeyNumber(c10_, name) - zeros;
      return place >= 0 && place < 64 ? uint64_t{1} << place : uint64_t{0};
    };
    conjugate_.key = bit("Conjugate");
    negative_.key = bit("Negative");
    FindByName("aten::_conj_physical", &conjugate_.kernel);
    FindByName("aten::neg", &negative_.kernel);
  }
  // The types are numbered in the order of c10/core/ivalue.h (TORCH_FORALL_TAGS), where what came since stands
  // between integers and booleans.
  tags_.string = value_.boolean + 2;
  tags_.complex = value_.real + 1;
  tags_.generator = value_.list + 12;
  const uint32_t device = value_.list + 4;
  for (const uint32_t tag : {value_.none, value_.tensor, value_.integer, value_.real, value_.boolean, value_.list,
                             tags_.string, tags_.generator, tags_.complex, device}) {
    if (tag < 64) carried_ |= uint64_t{1} << tag;
  }
}

// Finds what sparse tensors are read, made and computed with.
void CpuKernels::FindSparse(void* torch, const TensorLayout& layout) {
  // Without these two nothing sparse is computed. They are those of torch 2.5 and later, whose optionals are the
  // standard library's.
  sparse_.coo = reinterpret_cast<decltype(sparse_.coo)>(dlsym(
      torch,
      "_ZN2at4_ops25_sparse_coo_tensor_unsafe4callERKNS_6TensorES4_N3c108ArrayRefINS5_6SymIntEEESt8optionalINS5_"
      "10ScalarTypeEES9_INS5_6LayoutEES9_INS5_6DeviceEES9_IbESG_"));
  sparse_.compressed = reinterpret_cast<decltype(sparse_.compressed)>(dlsym(
      torch,
      "_ZN2at4_ops32_sparse_compressed_tensor_unsafe4callERKNS_6TensorES4_S4_N3c108ArrayRefINS5_6SymIntEEESt8opt"
      "ionalINS5_10ScalarTypeEES9_INS5_6LayoutEES9_INS5_6DeviceEES9_IbE"));
  sparse_.reader = SparseReader(torch, layout);
  sparse_.exclude_key = reinterpret_cast<decltype(sparse_.exclude_key)>(
      dlsym(c10_, "_ZN3c104impl29tls_set_dispatch_key_excludedENS_11DispatchKeyEb"));
  constexpr const char* kAbove[] = {"AutogradFunctionality", "AutogradOther", "AutogradNestedTensor",
                                    "ADInplaceOrView"};
  for (size_t i = 0; i < std::size(kAbove); ++i) sparse_.keys_above[i] = KeyNumber(c10_, kAbove[i]);
  if (sparse_.exclude_key == nullptr) sparse_.coo = nullptr, sparse_.compressed = nullptr;
  sparse_.keys[0] = sparse_.coo != nullptr ? KeyNumber(c10_, "SparseCPU") : 0;
  sparse_.keys[1] = sparse_.compressed != nullptr ? KeyNumber(c10_, "SparseCsrCPU") : 0;
}

// Looks at what can be told without an operator.
const char* CpuKernels::Check() const {
  if (keys_[0] == 0 || keys_[1] == 0 || keys_[2] == 0) return "its dispatch keys have other names";
  if (value_.none != 0 || value_.tensor != 1 || value_.real != 3 || value_.integer != 5 ||
      value_.list != value_.boolean + 4) {
    return "its values have other types";
  }
  float memory[6] = {1, 2, 3, 4, 5, 6};
  constexpr int64_t kSizes[] = {3}, kStrides[] = {2};
  TensorPlace place;
  place.data = reinterpret_cast<uintptr_t>(memory);
  place.numel = 3;
  place.rank = 1;
  place.sizes = kSizes;
  place.strides = kStrides;
  place.dtype = kFloat;
  place.device = kCpu;
  place.element_bytes = sizeof(float);
  RawValue value, other;
  if (!MakeAlias(place, &value)) return "a tensor cannot be made";
  TensorPlace read;
  const char* why = nullptr;
  if (!Read(value, &read) || read.data != place.data || read.numel != 3 || read.rank != 1 || read.strides[0] != 2 ||
      read.dtype != 6 || read.device != kCpu) {
    why = "a tensor of its is not read as it was made";
  } else if (Owners(value.payload) != 1 || !Another(value, &other) || other.payload != value.payload ||
             Owners(value.payload) != 2) {
    why = "its objects are counted in another way";
  } else {
    Destroy(other);
    if (Owners(value.payload) != 1) why = "its objects are counted in another way";
  }
  if (why == nullptr) Destroy(value);
  return why;
}

bool CpuKernels::Find(const abi::RecordFunction& record, Form form, CpuKernel* kernel) const try {
  // std::optional<c10::OperatorName>: two strings and a flag. It is looked into by torch alone, and never destroyed.
  alignas(16) unsigned char name[128] = {};
  operator_name_(name, &record);
  // Either string begins with a pointer, which is null here where there is no name: of a node of the backward.
  if (Load<uintptr_t>(reinterpret_cast<uintptr_t>(name)) == 0) return false;
  Handle handle = {};
  // An operator that consists of others on CUDA, too, launches nothing itself.
  return FindSchema(name, &handle) &&
         KernelOf(handle, kernel_of_(reinterpret_cast<const void*>(handle.definition), cuda_key_) != nullptr, form,
                  kernel);
} catch (...) {
  return false;
}

bool CpuKernels::FindByName(std::string_view name, CpuKernel* kernel) const try {
  const bool old = HasOldStrings(c10_);
  const size_t dot = std::min(name.find('.'), name.size());
  const TorchString own(name.substr(0, dot), old);
  const TorchString overload(dot < name.size() ? name.substr(dot + 1) : std::string_view(), old);
  // c10::OperatorName: the two strings.
  alignas(16) unsigned char both[2 * sizeof(NewString)];
  std::memcpy(both, own.get(), own.size());
  std::memcpy(both + own.size(), overload.get(), overload.size());
  Handle handle = {};
  return FindSchema(both, &handle) && KernelOf(handle, true, Form::kDense, kernel);
} catch (...) {
  return false;
}

bool CpuKernels::FindSchema(const void* name, Handle* handle) const {
  find_schema_(handle, dispatcher_(), name);
  return handle->found == 1 && handle->definition != 0;
}

bool CpuKernels::KernelOf(const Handle& handle, bool composite, Form form, CpuKernel* kernel) const {
  std::array<uint16_t, 4> keys = keys_;
  if (form != Form::kDense) {
    keys[0] = sparse_.keys[form == Form::kCoo ? 0 : 1];
    if (keys[0] == 0) return false;
  }
  for (const uint16_t key : keys) {
    if (key == 0 || (key == keys_[3] && (!composite || form != Form::kDense))) continue;
    // c10::impl::AnnotatedKernel begins with a c10::KernelFunction: an object and the function that is called with
    // it.
    const void* found = kernel_of_(reinterpret_cast<const void*>(handle.definition), key);
    if (found == nullptr) continue;
    const auto at = reinterpret_cast<uintptr_t>(found);
    const auto run = Load<decltype(kernel->run)>(at + 8);
    // A library's function: neither null nor something else that lies there, nor what calls the program's Python.
    const std::string_view library = LibraryOf(reinterpret_cast<uintptr_t>(run));
    if (library.data() == nullptr || library.ends_with("libtorch_python.so")) return false;
    auto* kept = new (std::nothrow) Handle(handle);  // one for each operator, for ever
    if (kept == nullptr) return false;
    *kernel = {.functor = Load<void*>(at), .run = run, .handle = kept, .sparse = form != Form::kDense};
    return true;
  }
  return false;
}

double CpuKernels::Real(const RawValue& value) const {
  return value.tag == value_.real ? std::bit_cast<double>(value.payload)
                                  : static_cast<double>(static_cast<int64_t>(value.payload));
}

bool CpuKernels::Count(const RawValue& tensor, int64_t* count) const {
  SparseParts parts;
  const RawValue part = ReadSparse(tensor, &parts) ? PartOf(parts.values) : tensor;
  TensorPlace place;
  if (!IsTensor(part) || !Read(part, &place) || place.rank == 0) return false;
  *count = place.sizes[0];
  return true;
}

bool CpuKernels::IsShared(const RawValue& value) const {
  if (value.tag == value_.list) return value.payload != 0;
  return (value.tag == tags_.string || value.tag == tags_.generator || value.tag == tags_.complex) &&
         value.payload != 0;
}

uintptr_t CpuKernels::FirstWord(const RawValue& tensor) const {
  if (!IsTensor(tensor)) return 0;
  const uintptr_t at = tensor.payload;
  const auto storage = Load<uintptr_t>(at + tensor_.storage);
  const uint64_t bytes = ElementSize(Load<uint16_t>(at + tensor_.dtype));
  if (storage == 0 || tensor_.offset == 0 || Load<uint64_t>(at + tensor_.numel) * bytes < sizeof(uint64_t)) return 0;
  const auto data = Load<uintptr_t>(storage + tensor_.storage_data);
  return data != 0 ? data + static_cast<uint64_t>(Load<int64_t>(at + tensor_.offset)) * bytes : 0;
}

bool CpuKernels::Read(const RawValue& tensor, TensorPlace* place) const {
  const uintptr_t at = tensor.payload;
  const auto storage = Load<uintptr_t>(at + tensor_.storage);
  place->dtype = Load<uint16_t>(at + tensor_.dtype);
  // Numbers that are not quantized, and complex ones only where they are wanted, of two floats or doubles.
  const bool plain = place->dtype <= 7 || place->dtype == kBool || place->dtype == 15 ||
                     (complex_ && (place->dtype == 9 || place->dtype == 10));
  if (storage == 0 || !plain || tensor_.offset == 0) return false;
  const uint64_t keys = tensor_.zeros_key != 0 ? Load<uint64_t>(at + tensor_.keys) : 0;
  if ((keys & tensor_.zeros_key) != 0) return false;
  place->conjugate = (keys & conjugate_.key) != 0;
  place->negate = (keys & negative_.key) != 0;
  place->element_bytes = ElementSize(place->dtype);
  place->device = Load<int8_t>(at + tensor_.device);
  place->numel = Load<uint64_t>(at + tensor_.numel);
  const TensorShape shape = ShapeOf(at, tensor_);
  place->rank = shape.rank;
  place->sizes = shape.sizes;
  place->strides = shape.strides;
  const auto data = Load<uintptr_t>(storage + tensor_.storage_data);
  if (data == 0 && place->numel != 0) return false;
  place->data = data + static_cast<uint64_t>(Load<int64_t>(at + tensor_.offset)) * place->element_bytes;
  return true;
}

// c10::detail::ListImpl: virtual table, count of owners, the vector, and the type of its elements, which is a
// std::shared_ptr or a pointer to a type that lives for ever and null.
bool CpuKernels::CloneList(const RawValue& list, RawValue* clone) const try {
  constexpr size_t kTypeBytes = 16;
  const size_t type_at = value_.list_values + sizeof(RawVector);
  const RawVector* elements = Elements(list);
  RawVector own;
  if (!MakeStack(elements->size() + 1, &own)) return false;
  auto* object = static_cast<unsigned char*>(new_(type_at + kTypeBytes));
  std::memcpy(object, reinterpret_cast<const void*>(list.payload), type_at + kTypeBytes);
  const auto at = reinterpret_cast<uintptr_t>(object);
  Owners(at).store(1, std::memory_order_relaxed);
  if (const auto shared = Load<uintptr_t>(at + type_at + 8); shared != 0) Owners(shared).fetch_add(1);
  for (const RawValue* element = elements->begin; element != elements->end; ++element) {
    *own.end = *element;
    if (IsTensor(*element) && !Another(*element, own.end)) *own.end = None();
    if (IsShared(*element)) Share(*element);
    ++own.end;
  }
  std::memcpy(object + value_.list_values, &own, sizeof own);
  *clone = {at, value_.list, 0};
  return true;
} catch (...) {
  return false;
}

void CpuKernels::Share(const RawValue& value) const { Owners(value.payload).fetch_add(1, std::memory_order_relaxed); }

bool CpuKernels::IsMine(const RawValue& value) const { return Owners(value.payload).load() == 1; }

void CpuKernels::Destroy(const RawValue& value) const {
  if (IsTensor(value)) {
    // An at::Tensor on the heap, which torch deletes.
    void* box = new_(sizeof(void*));
    std::memcpy(box, &value.payload, sizeof(void*));
    delete_tensor_(box);
  } else if (IsShared(value) && Owners(value.payload).fetch_sub(1, std::memory_order_acq_rel) == 1) {
    // The second entry of the virtual table is the destructor that also frees.
    const auto table = Load<uintptr_t>(value.payload);
    Load<void (*)(void*)>(table + 8)(reinterpret_cast<void*>(value.payload));
  }
}

bool CpuKernels::MakeAlias(const TensorPlace& place, RawValue* value) const {
  static char nothing[16];
  void* data = place.numel != 0 ? reinterpret_cast<void*>(place.data) : nothing;
  void* handle = nullptr;
  const int failed = make_.alias(data, static_cast<int64_t>(place.rank), place.sizes, place.strides, 0, place.dtype,
                                 kCpu, 0, &handle);
  if (failed != 0 || handle == nullptr) return false;
  *value = TakeFromBox(handle);
  return true;
}

// Moves a tensor out of the box that torch's functions give it in.
RawValue CpuKernels::TakeFromBox(void* box) const {
  const RawValue value = {Load<uint64_t>(reinterpret_cast<uintptr_t>(box)), value_.tensor, 0};
  std::memcpy(box, &undefined_, sizeof undefined_);
  delete_tensor_(box);
  return value;
}

bool CpuKernels::MakeTensor(const TensorPlace& like, uint16_t dtype, RawValue* value) const {
  std::array<int64_t, 64> rows{};  // torch has no tensor of more dimensions
  if (like.rank > rows.size()) return false;
  int64_t count = 1;
  for (uint64_t i = like.rank; i-- > 0;) {
    rows[i] = count;
    count *= std::max<int64_t>(like.sizes[i], 1);
  }
  void* handle = nullptr;
  if (make_.empty(static_cast<int64_t>(like.rank), like.sizes, like.dense() ? like.strides : rows.data(), dtype, kCpu,
                  0, &handle) != 0 ||
      handle == nullptr) {
    return false;
  }
  *value = TakeFromBox(handle);
  return true;
}

bool CpuKernels::MakeTrueList(size_t count, RawValue* value) const try {
  RawVector values;
  if (!MakeStack(count, &values)) return false;
  for (size_t i = 0; i < count; ++i) *values.end++ = Boolean(true);
  // A c10::Type::SingletonOrSharedTypePtr of a type that lives for ever.
  void* type[2] = {make_.bool_type(), nullptr};
  void* const list = new_(value_.list_values + sizeof(RawVector) + sizeof type);
  make_.list(list, &values, static_cast<void*>(type));
  // One owner, and torch's own count of weak ones.
  Owners(reinterpret_cast<uintptr_t>(list)).store(1);
  reinterpret_cast<std::atomic<uint32_t>*>(reinterpret_cast<uintptr_t>(list) + 12)->store(1);
  *value = {reinterpret_cast<uint64_t>(list), value_.list, 0};
  return true;
} catch (...) {
  return false;
}

bool CpuKernels::MakeSparse(const RawValue& like, const SparseParts& from, const RawValue* parts,
                            RawValue* value) const {
  const TensorShape shape = ShapeOf(like.payload, tensor_);
  // A std::optional of one byte: its value, and then whether there is one.
  const uint64_t extra = from.extra | uint64_t{1} << 8;
  uint64_t made = 0;
  const bool good = Unseen([&] {
    if (from.compressed) {
      sparse_.compressed(&made, &parts[0].payload, &parts[1].payload, &parts[2].payload, shape.sizes, shape.rank, 0,
                         extra, 0, 0);
    } else {
      sparse_.coo(&made, &parts[0].payload, &parts[1].payload, shape.sizes, shape.rank, 0, 0, 0, 0, extra);
    }
  });
  *value = {made, value_.tensor, 0};
  return good && made != 0;
}

bool CpuKernels::Another(const RawValue& tensor, RawValue* value) const {
  if (make_.handle == nullptr) {
    // Such a torch counts Python's ownership of a tensor as one owner more, and tells Python of no other.
    *value = tensor;
    Share(tensor);
    return true;
  }
  uint64_t box = tensor.payload;
  void* handle = nullptr;
  if (make_.handle(&box, &handle) != 0 || handle == nullptr) return false;
  *value = TakeFromBox(handle);
  return true;
}

uint64_t CpuKernels::Seed(const RawValue& cuda) const {
  const auto object = IsGenerator(cuda) ? reinterpret_cast<const void*>(cuda.payload)
                                        : Load<const void*>(reinterpret_cast<uintptr_t>(generators_.of_device(-1)));
  const uint64_t seed =
      generators_.seed(object) * 0x9e3779b97f4a7c15u + generators_.offset(object) * 0xc2b2ae3d27d4eb4fu;
  return seed ^ seed >> 29;
}

bool CpuKernels::MakeGenerator(const RawValue& cuda, RawValue* value) const try {
  uint64_t made = 0;
  generators_.make(&made, Seed(cuda));
  *value = {made, tags_.generator, 0};
  return made != 0;
} catch (...) {
  return false;
}

// A c10::WarningHandler that drops what the CPU's kernels have to say: the program runs on a GPU.
class NoWarnings {
 public:
  virtual ~NoWarnings() = default;
  virtual void process(const void* /*warning*/) {}
};

// Calls torch's code on this thread without callbacks and warnings. Returns false when it throws.
template <typename Call>
bool CpuKernels::Unseen(const Call& call) const {
  static auto* const no_warnings = new NoWarnings;
  const PlainKeys plain(c10_);
  const bool recorded = records_();
  if (recorded) record_(false);
  void* const handler = warnings_.get != nullptr ? warnings_.get() : nullptr;
  if (handler != nullptr) warnings_.set(no_warnings);
  const bool good = exceptions_.Completes(call);
  if (handler != nullptr) warnings_.set(handler);
  if (recorded) record_(true);
  return good;
}

bool CpuKernels::Run(const CpuKernel& kernel, RawVector* stack) const {
  // A kernel that returns references to several of its operands (linalg_lu_factor_ex.out) does so after it has
  // dropped them, so that we own them until then.
  RawValue owned[kMostOperands];
  size_t count = 0;
  for (const RawValue* value = stack->begin; value != stack->end && count != kMostOperands; ++value) {
    if (!IsTensor(*value)) continue;
    Share(*value);
    owned[count++] = *value;
  }
  const bool good = Unseen([&] {
    // These kernels count on it that nothing of autograd's lies between them and what they call: a tensor's parts are
    // then its parts, and no views of them. What is changed here is undone with the rest (PlainKeys).
    for (const uint16_t key : sparse_.keys_above) {
      if (kernel.sparse) sparse_.exclude_key(key, true);
    }
    kernel.run(kernel.functor, kernel.handle, 0, stack);
  });
  while (count != 0) Destroy(owned[--count]);
  if (!good) Clear(stack);
  return good;
}

bool CpuKernels::Copy(const RawValue& to, const RawValue& from) const {
  uint64_t target = to.payload;
  return Unseen([&] { copy_(&target, &from.payload, false); });
}

bool CpuKernels::SetGradients(bool wanted) const {
  const bool before = gradients_.enabled();
  gradients_.enable(wanted);
  return before;
}

RawValue CpuKernels::GradientOf(const RawValue& tensor) const {
  return {Load<uint64_t>(reinterpret_cast<uintptr_t>(gradients_.of_tensor(tensor.payload))), value_.tensor, 0};
}

bool CpuKernels::Resolve(bool conjugate, RawValue* tensor) const {
  const CpuKernel& kernel = conjugate ? conjugate_.kernel : negative_.kernel;
  RawVector stack;
  if (kernel.run == nullptr || !MakeStack(1, &stack)) return false;
  *stack.end++ = *tensor;
  *tensor = None();
  const bool good = Run(kernel, &stack) && stack.size() == 1;
  if (good) *tensor = *--stack.end;
  Clear(&stack);
  ::operator delete(stack.begin);
  return good;
}

bool CpuKernels::MakeStack(size_t count, RawVector* stack) const try {
  stack->begin = static_cast<RawValue*>(new_(count * sizeof(RawValue)));
  stack->end = stack->begin;
  stack->capacity = stack->begin + count;
  return true;
} catch (...) {
  return false;
}

void CpuKernels::Clear(RawVector* stack) const {
  while (stack->end != stack->begin) Destroy(*--stack->end);
}

}  // namespace rfinject
