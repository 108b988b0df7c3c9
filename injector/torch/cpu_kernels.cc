#include "injector/torch/cpu_kernels.h"

#include <dlfcn.h>

#include <atomic>
#include <cstring>
#include <iterator>
#include <new>
#include <string_view>

#include "injector/torch/operands.h"

namespace rfinject {
namespace {

constexpr int32_t kCpu = 0;
constexpr size_t kMostOperands = 32;

template <typename T>
T Load(uintptr_t address) {
  T value;
  std::memcpy(static_cast<void*>(&value), reinterpret_cast<const void*>(address), sizeof(value));
  return value;
}

// c10::intrusive_ptr_target begins with its virtual table and the count of its owners, whose low half is 32 bits wide
// in every release.
std::atomic<uint32_t>& Owners(uintptr_t object) { return *reinterpret_cast<std::atomic<uint32_t>*>(object + 8); }

// Two std::strings that torch may want: that of its C++ library, or the one from before C++11, whose pointer has its
// length, its capacity and a count in front of it.
struct NewString {
  const char* text;
  size_t length;
  char inside[16];
};
struct OldString {
  size_t length, capacity;
  int64_t owners;  // an int and the padding behind it
  char text[64];
};
static_assert(offsetof(OldString, text) == 24);

// The exclusion of nothing and the inclusion of nothing: what a thread begins with. Torch's thread-local pair of key
// sets is stored relative to that, so that it is zeros.
class PlainKeys {
 public:
  explicit PlainKeys(void* c10) {
    __attribute__((tls_model("initial-exec"))) static constinit thread_local uint64_t* keys = nullptr;
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

// Returns the number of a dispatch key by its name, 0 where torch has no such function.
uint16_t KeyNumber(void* c10, std::string_view name) {
  using Parse = uint16_t (*)(const void*);
  if (const auto parse = reinterpret_cast<Parse>(
          dlsym(c10, "_ZN3c1016parseDispatchKeyERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"))) {
    char text[64] = {};
    name.copy(text, sizeof text - 1);
    const NewString string = {text, name.size(), {}};
    return parse(&string);
  }
  if (const auto parse = reinterpret_cast<Parse>(dlsym(c10, "_ZN3c1016parseDispatchKeyERKSs"))) {
    OldString string = {name.size(), name.size(), 0, {}};
    name.copy(string.text, sizeof string.text - 1);
    const char* text = string.text;
    return parse(static_cast<const void*>(&text));
  }
  return 0;
}

}  // namespace

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

bool CpuKernels::Init(const TorchSymbols& symbols, const TorchLayouts& layouts, const char** why) {
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
  bind(torch, "aoti_torch_create_tensor_from_blob", &make_alias_);
  bind(torch, "aoti_torch_delete_tensor_object", &delete_tensor_);
  bind(torch, "_ZN3c1010Dispatcher13realSingletonEv", &dispatcher_);
  bind(torch, "_ZN3c1010Dispatcher10findSchemaERKNS_12OperatorNameE", &find_schema_);
  bind(torch, "_ZNK2at14RecordFunction13operator_nameEv", &operator_name_);
  bind(torch, "_ZNK3c104impl13OperatorEntry23getKernelForDispatchKeyENS_11DispatchKeyE", &kernel_of_);
  bind(torch, "_ZN2at4_ops5copy_4callERNS_6TensorERKS2_b", &copy_);
  bind(torch, "_ZN2at23isRecordFunctionEnabledEv", &records_);
  bind(torch, "_ZN2at20enableRecordFunctionEb", &record_);
  bind(torch, "_ZN2at6detail18createCPUGeneratorEm", &make_generator_);
  void* cuda = dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD);
  all = all && cuda != nullptr && dlsym(c10_, "_ZN3c104impl26raw_local_dispatch_key_setE") != nullptr;
  if (cuda != nullptr) {
    bind(cuda, "_ZN2at4cuda6detail23getDefaultCUDAGeneratorEa", &default_generator_);
    bind(cuda, "_ZNK2at17CUDAGeneratorImpl12current_seedEv", &seed_);
    bind(cuda, "_ZNK2at17CUDAGeneratorImpl24philox_offset_per_threadEv", &offset_);
    dlclose(cuda);
  }
  // Without these two nothing sparse is computed. They are those of torch 2.5 and later, whose optionals are the
  // standard library's.
  make_coo_ = reinterpret_cast<decltype(make_coo_)>(dlsym(
      torch,
      "_ZN2at4_ops25_sparse_coo_tensor_unsafe4callERKNS_6TensorES4_N3c108ArrayRefINS5_6SymIntEEESt8optionalINS5_"
      "10ScalarTypeEES9_INS5_6LayoutEES9_INS5_6DeviceEES9_IbESG_"));
  make_compressed_ = reinterpret_cast<decltype(make_compressed_)>(dlsym(
      torch,
      "_ZN2at4_ops32_sparse_compressed_tensor_unsafe4callERKNS_6TensorES4_S4_N3c108ArrayRefINS5_6SymIntEEESt8opt"
      "ionalINS5_10ScalarTypeEES9_INS5_6LayoutEES9_INS5_6DeviceEES9_IbE"));
  sparse_ = SparseReader(torch, layouts.tensor);
  // Torch up to 2.6 has no such function.
  new_handle_ = reinterpret_cast<decltype(new_handle_)>(dlsym(torch, "aoti_torch_new_tensor_handle"));
  all = exceptions_.Init(torch) && all;
  if (!all) {
    *why = "libtorch has not the functions for it";
    return false;
  }
  keys_[0] = KeyNumber(c10_, "CPU");
  keys_[1] = KeyNumber(c10_, "CompositeExplicitAutogradNonFunctional");
  keys_[2] = KeyNumber(c10_, "CompositeExplicitAutograd");
  exclude_key_ = reinterpret_cast<decltype(exclude_key_)>(
      dlsym(c10_, "_ZN3c104impl29tls_set_dispatch_key_excludedENS_11DispatchKeyEb"));
  constexpr const char* kAbove[] = {"AutogradFunctionality", "AutogradOther", "AutogradNestedTensor",
                                    "ADInplaceOrView"};
  for (size_t i = 0; i < std::size(kAbove); ++i) keys_above_[i] = KeyNumber(c10_, kAbove[i]);
  if (exclude_key_ == nullptr) make_coo_ = nullptr, make_compressed_ = nullptr;
  sparse_keys_[0] = make_coo_ != nullptr ? KeyNumber(c10_, "SparseCPU") : 0;
  sparse_keys_[1] = make_compressed_ != nullptr ? KeyNumber(c10_, "SparseCsrCPU") : 0;
  *why = Check();
  // The types are numbered in the order of c10/core/ivalue.h (TORCH_FORALL_TAGS), where what came since stands
  // between integers and booleans.
  string_tag_ = value_.boolean + 2;
  complex_tag_ = value_.real + 1;
  generator_tag_ = value_.list + 12;
  return *why == nullptr;
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
  const TensorPlace place = {reinterpret_cast<uintptr_t>(memory), 3, 1, kSizes, kStrides, 6, kCpu, 4};
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
  uint16_t keys[] = {keys_[0], keys_[1], keys_[2]};
  if (form != Form::kDense) keys[0] = sparse_keys_[form == Form::kCoo ? 0 : 1];
  if (keys[0] == 0) return false;
  // std::optional<c10::OperatorName>: two strings and a flag. It is looked into by torch alone, and never destroyed.
  alignas(16) unsigned char name[128] = {};
  operator_name_(name, &record);
  // Either string begins with a pointer, which is null here where there is no name: of a node of the backward.
  if (Load<uintptr_t>(reinterpret_cast<uintptr_t>(name)) == 0) return false;
  // std::optional<c10::OperatorHandle>: the operator's definition, its place in a list, and the flag.
  struct Handle {
    uintptr_t definition;
    uintptr_t place;
    uint8_t found;
    uint8_t unused[7];
  } handle = {};
  find_schema_(&handle, dispatcher_(), name);
  if (handle.found != 1 || handle.definition == 0) return false;
  for (const uint16_t key : keys) {
    // c10::impl::AnnotatedKernel begins with a c10::KernelFunction: an object and the function that is called with
    // it.
    const void* found = kernel_of_(reinterpret_cast<const void*>(handle.definition), key);
    if (found == nullptr) continue;
    const auto at = reinterpret_cast<uintptr_t>(found);
    kernel->functor = Load<void*>(at);
    kernel->run = Load<decltype(kernel->run)>(at + 8);
    Dl_info info{};
    // A library's function: neither null nor something else that lies there.
    if (kernel->run == nullptr || dladdr(reinterpret_cast<void*>(kernel->run), &info) == 0) return false;
    auto* kept = new (std::nothrow) Handle(handle);  // one for each operator, for ever
    kernel->handle = kept;
    kernel->sparse = form != Form::kDense;
    return kept != nullptr;
  }
  return false;
} catch (...) {
  return false;
}

Form CpuKernels::FormOf(const RawValue& value) const {
  SparseParts parts;
  if (!ReadSparse(value, &parts)) return Form::kDense;
  return parts.compressed ? Form::kCompressed : Form::kCoo;
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
  return (value.tag == string_tag_ || value.tag == generator_tag_ || value.tag == complex_tag_) && value.payload != 0;
}

bool CpuKernels::Read(const RawValue& tensor, TensorPlace* place) const {
  const uintptr_t at = tensor.payload;
  const auto storage = Load<uintptr_t>(at + tensor_.storage);
  place->dtype = Load<uint16_t>(at + tensor_.dtype);
  const bool plain =
      place->dtype <= 7 || place->dtype == 11 || place->dtype == 15;  // no complex or quantized numbers
  if (storage == 0 || !plain || tensor_.offset == 0) return false;
  if (tensor_.zeros_key != 0 && (Load<uint64_t>(at + tensor_.keys) & tensor_.zeros_key) != 0) return false;
  place->element_bytes = ElementSize(place->dtype);
  place->device = Load<int8_t>(at + tensor_.device);
  place->numel = Load<uint64_t>(at + tensor_.numel);
  place->rank = Load<uint64_t>(at + tensor_.sizes);
  const uintptr_t inline_sizes = at + tensor_.sizes + 8;
  const bool outside = place->rank > kInlineRank;
  place->sizes = outside ? Load<const int64_t*>(inline_sizes) : reinterpret_cast<const int64_t*>(inline_sizes);
  place->strides = place->sizes + (outside ? place->rank : kInlineRank);
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
  const int failed = make_alias_(data, static_cast<int64_t>(place.rank), place.sizes, place.strides, 0, place.dtype,
                                 kCpu, 0, &handle);
  if (failed != 0 || handle == nullptr) return false;
  // The tensor moves out of the box that it came in.
  *value = {Load<uint64_t>(reinterpret_cast<uintptr_t>(handle)), value_.tensor, 0};
  std::memcpy(handle, &undefined_, sizeof undefined_);
  delete_tensor_(handle);
  return true;
}

bool CpuKernels::MakeSparse(const RawValue& like, const SparseParts& from, const RawValue* parts,
                            RawValue* value) const {
  const auto rank = Load<uint64_t>(like.payload + tensor_.sizes);
  const uintptr_t inside = like.payload + tensor_.sizes + 8;
  const auto* sizes = rank > kInlineRank ? Load<const int64_t*>(inside) : reinterpret_cast<const int64_t*>(inside);
  // A std::optional of one byte: its value, and then whether there is one.
  const uint64_t extra = from.extra | uint64_t{1} << 8;
  const PlainKeys plain(c10_);
  const bool recorded = records_();
  if (recorded) record_(false);
  uint64_t made = 0;
  const bool good = exceptions_.Completes([&] {
    if (from.compressed) {
      make_compressed_(&made, &parts[0].payload, &parts[1].payload, &parts[2].payload, sizes, rank, 0, extra, 0, 0);
    } else {
      make_coo_(&made, &parts[0].payload, &parts[1].payload, sizes, rank, 0, 0, 0, 0, extra);
    }
  });
  if (recorded) record_(true);
  *value = {made, value_.tensor, 0};
  return good && made != 0;
}

bool CpuKernels::MakeOperand(const RawValue& tensor, RawValue* operand) const {
  if (SparseParts from; ReadSparse(tensor, &from)) {
    RawValue parts[3];
    size_t made = 0;
    const size_t indices = from.index_count();
    while (made <= indices && MakeOperand(PartOf(made < indices ? from.indices[made] : from.values), &parts[made])) {
      ++made;
    }
    const bool good = made > indices && MakeSparse(tensor, from, parts, operand);
    while (made != 0) Destroy(parts[--made]);
    return good;
  }
  TensorPlace place;
  if (!Read(tensor, &place)) return false;
  return place.device != kCpu ? MakeAlias(place, operand) : Another(tensor, operand);
}

bool CpuKernels::Another(const RawValue& tensor, RawValue* value) const {
  if (new_handle_ == nullptr) {
    // Such a torch counts Python's ownership of a tensor as one owner more, and tells Python of no other.
    *value = tensor;
    Share(tensor);
    return true;
  }
  uint64_t box = tensor.payload;
  void* handle = nullptr;
  if (new_handle_(&box, &handle) != 0 || handle == nullptr) return false;
  *value = {Load<uint64_t>(reinterpret_cast<uintptr_t>(handle)), value_.tensor, 0};
  std::memcpy(handle, &undefined_, sizeof undefined_);
  delete_tensor_(handle);
  return true;
}

bool CpuKernels::MakeGenerator(const RawValue& cuda, RawValue* value) const try {
  const auto object = IsGenerator(cuda) ? reinterpret_cast<const void*>(cuda.payload)
                                        : Load<const void*>(reinterpret_cast<uintptr_t>(default_generator_(-1)));
  const uint64_t seed = seed_(object) * 0x9e3779b97f4a7c15u + offset_(object) * 0xc2b2ae3d27d4eb4fu;
  uint64_t made = 0;
  make_generator_(&made, seed ^ seed >> 29);
  *value = {made, generator_tag_, 0};
  return made != 0;
} catch (...) {
  return false;
}

bool CpuKernels::Run(const CpuKernel& kernel, RawVector* stack) const {
  const PlainKeys plain(c10_);
  const bool recorded = records_();
  if (recorded) record_(false);
  // These kernels count on it that nothing of autograd's lies between them and what they call: a tensor's parts are
  // then its parts, and no views of them. What is changed here is undone with the rest (PlainKeys).
  for (const uint16_t key : keys_above_) {
    if (kernel.sparse) exclude_key_(key, true);
  }
  // A kernel that returns references to several of its operands (linalg_lu_factor_ex.out) does so after it has
  // dropped them, so that somebody else must own them until then.
  RawValue owned[kMostOperands];
  size_t count = 0;
  for (const RawValue* value = stack->begin; value != stack->end && count != kMostOperands; ++value) {
    if (!IsTensor(*value)) continue;
    Share(*value);
    owned[count++] = *value;
  }
  const bool good = exceptions_.Completes([&] { kernel.run(kernel.functor, kernel.handle, 0, stack); });
  while (count != 0) Destroy(owned[--count]);
  if (!good) Clear(stack);
  if (recorded) record_(true);
  return good;
}

bool CpuKernels::Copy(const RawValue& to, const RawValue& from) const {
  const PlainKeys plain(c10_);
  const bool recorded = records_();
  if (recorded) record_(false);
  uint64_t target = to.payload;
  const bool good = exceptions_.Completes([&] { copy_(&target, &from.payload, false); });
  if (recorded) record_(true);
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
