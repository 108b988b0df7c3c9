// Calibration without Python: a dozen calls of libtorch's own C++ functions, found by their mangled names and made as
// the Itanium C++ ABI passes their arguments. These types cross the calls, in these releases:
//
//   at::Tensor                a pointer to its TensorImpl; returned through a hidden pointer; always
//   c10::ArrayRef             pointer and count, by value; always
//   c10::Scalar               a 32-bit tag (0: double, 1: integer), the value 16 bytes further; always
//   optional<small type>      up to torch 2.0 c10's own: an engaged byte, then the value; since 2.5 the standard
//                             library's: the value, then the byte. Its mangled name tells which one.
//   at::TensorBase::grad_fn   a reference to the node's smart pointer, whose first word is the node
//
// If one of these does not hold for a torch, the expected contents are not found, and the calibration fails.

#include <dlfcn.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <initializer_list>

#include "injector/torch/abi.h"
#include "injector/torch/calibration.h"
#include "injector/torch/calibrator.h"

namespace rfinject {
namespace {

// The tensors made here, some 30 of at most 576 bytes, are never freed, because that would take more of torch's ABI.
// They stay reachable, so that leak checkers do not report them.
constexpr size_t kMaxTensors = 64;
void* g_tensors[kMaxTensors];

using Tensor = void*;  // the TensorImpl

// at::Tensor as a return value.
struct Returned {
  Tensor impl = nullptr;
  ~Returned() {}
};

template <typename T>
struct ArrayRef {
  const T* data;
  size_t size;
};

struct Scalar {
  explicit Scalar(int64_t integer) : tag(1) { std::memcpy(value, &integer, sizeof integer); }
  explicit Scalar(double real) : tag(0) { std::memcpy(value, &real, sizeof real); }
  alignas(16) int32_t tag;
  alignas(16) unsigned char value[16] = {};
};
static_assert(sizeof(Scalar) == 32);

enum DTypeNumber : uint8_t { kI64 = 4, kF32 = 6, kF64 = 7, kBool = 11 };  // c10::ScalarType
constexpr uint8_t kMetaDevice = 14;                                       // c10::DeviceType

class Driver {
 public:
  Driver(void* torch, void* c10, const TorchSymbols& symbols, Calibrator* calibrator)
      : torch_(torch), symbols_(symbols), calibrator_(calibrator) {
    constexpr char kEmpty[] = "_ZN2at4_ops19empty_memory_format4callEN3c108ArrayRefINS2_6SymIntEEE%s";
    constexpr char kOldOptionals[] =
        "NS2_8optionalINS2_10ScalarTypeEEENS6_INS2_6LayoutEEENS6_INS2_6DeviceEEENS6_IbEENS6_INS2_12MemoryFormatEEE";
    constexpr char kNewOptionals[] =
        "St8optionalINS2_10ScalarTypeEES6_INS2_6LayoutEES6_INS2_6DeviceEES6_IbES6_INS2_12MemoryFormatEE";
    char name[256];
    std::snprintf(name, sizeof name, kEmpty, kOldOptionals);
    empty_ = reinterpret_cast<Empty>(dlsym(torch, name));
    old_optional_ = empty_ != nullptr;
    if (empty_ == nullptr) {
      std::snprintf(name, sizeof name, kEmpty, kNewOptionals);
      empty_ = reinterpret_cast<Empty>(dlsym(torch, name));
    }
    if (empty_ == nullptr) missing_ = "at::empty";
    Bind("_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE", "at::add", &add_);
    Bind("_ZN2at4_ops11add__Tensor4callERNS_6TensorERKS2_RKN3c106ScalarE", "at::add_", &add_in_place_);
    Bind("_ZN2at4_ops10mul_Tensor4callERKNS_6TensorES4_", "at::mul", &multiply_);
    Bind("_ZN2at4_ops7mul_out4callERKNS_6TensorES4_RS2_", "at::mul_out", &multiply_into_);
    Bind("_ZN2at4_ops5stack4callEN3c108ArrayRefINS_6TensorEEEl", "at::stack", &stack_);
    Bind("_ZN2at4_ops7any_dim4callERKNS_6TensorElb", "at::any", &any_);
    Bind("_ZN2at4_ops4flip4callERKNS_6TensorEN3c108ArrayRefIlEE", "at::flip", &flip_);
    Bind("_ZN2at4_ops7permute4callERKNS_6TensorEN3c108ArrayRefIlEE", "at::permute", &permute_);
    Bind("_ZNK2at10TensorBase7grad_fnEv", "at::TensorBase::grad_fn", &grad_fn_);
    Bind("_ZNK2at10TensorBase8data_ptrIfEEPT_v", "at::TensorBase::data_ptr", &float_data_);
    Bind("_ZNK2at10TensorBase8data_ptrIdEEPT_v", "at::TensorBase::data_ptr", &double_data_);
    Bind("_ZNK2at10TensorBase8data_ptrIlEEPT_v", "at::TensorBase::data_ptr", &integer_data_);
    Bind("_ZNK2at10TensorBase8data_ptrIbEEPT_v", "at::TensorBase::data_ptr", &bool_data_);
    torch_ = c10;
    Bind("_ZN3c1010TensorImpl17set_requires_gradEb", "c10::TensorImpl::set_requires_grad", &set_requires_grad_);
    Bind("_ZN3c108GradMode11set_enabledEb", "c10::GradMode::set_enabled", &set_grad_mode_);
    cumsum_ = reinterpret_cast<Cumsum>(
        dlsym(torch, old_optional_ ? "_ZN2at4_ops6cumsum4callERKNS_6TensorElN3c108optionalINS5_10ScalarTypeEEE"
                                   : "_ZN2at4_ops6cumsum4callERKNS_6TensorElSt8optionalIN3c1010ScalarTypeEE"));
    diagonal_ = reinterpret_cast<decltype(diagonal_)>(dlsym(torch, "_ZN2at4_ops8diagonal4callERKNS_6TensorElll"));
    if (cumsum_ == nullptr && missing_ == nullptr) missing_ = "at::cumsum";
  }

  // What this libtorch lacks, or null when it has everything.
  const char* missing() const { return missing_; }

  void Run(bool operands) {
    const bool grad = symbols_.grad_enabled != nullptr && symbols_.grad_enabled();
    set_grad_mode_(true);
    Nodes();
    set_grad_mode_(false);
    if (operands) Operands();
    set_grad_mode_(grad);
    Tell("done");
  }

 private:
  // The optionals are 2 or 3 bytes, which travel in a register or a word of the stack.
  using Empty = Returned (*)(ArrayRef<int64_t> sizes, uint64_t dtype, uint64_t layout, uint64_t device, uint64_t pin,
                             uint64_t format);
  using Cumsum = Returned (*)(const Tensor* self, int64_t dim, uint64_t dtype);

  template <typename T>
  void Bind(const char* name, const char* readable, T* target) {
    *target = reinterpret_cast<T>(torch_ != nullptr ? dlsym(torch_, name) : nullptr);
    if (*target == nullptr && missing_ == nullptr) missing_ = readable;
  }

  [[gnu::format(printf, 2, 3)]] void Tell(const char* format, ...) {
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    calibrator_->Tell(line);
  }

  static Tensor Keep(const Returned& returned) {
    for (void*& place : g_tensors) {
      if (place != nullptr) continue;
      place = returned.impl;
      break;
    }
    return returned.impl;
  }

  Tensor Make(std::initializer_list<int64_t> sizes, DTypeNumber dtype = kF32, bool meta = false) {
    const uint64_t type = old_optional_ ? 1 | uint64_t{dtype} << 8 : dtype | uint64_t{1} << 8;
    constexpr uint64_t kCurrent = 0xff;  // index -1
    uint64_t device = 0;
    if (meta) {
      device = old_optional_ ? 1 | uint64_t{kMetaDevice} << 8 | kCurrent << 16
                             : kMetaDevice | kCurrent << 8 | uint64_t{1} << 16;
    }
    return Keep(empty_({sizes.begin(), sizes.size()}, type, 0, device, 0, 0));
  }

  void TellTensor(Tensor tensor, std::initializer_list<int64_t> sizes, std::initializer_list<int64_t> strides,
                  DTypeNumber dtype = kF32, bool meta = false, uint64_t offset = 0) {
    uintptr_t data = 0;
    if (!meta) {
      data = reinterpret_cast<uintptr_t>(dtype == kF32   ? float_data_(&tensor)
                                         : dtype == kF64 ? double_data_(&tensor)
                                         : dtype == kI64 ? integer_data_(&tensor)
                                                         : bool_data_(&tensor));
      if (offset != 0) data -= offset * sizeof(float);
    }
    int64_t numel = 1;
    for (int64_t size : sizes) numel *= size;
    char numbers[256] = {};
    size_t used = 0;
    for (const auto& list : {sizes, strides}) {
      for (int64_t number : list) {
        used += static_cast<size_t>(
            std::snprintf(numbers + used, sizeof numbers - used, " %lld", static_cast<long long>(number)));
      }
    }
    Tell("tensor %llu %d %d %llu %llu %lld %zu%s", Number(tensor), dtype, meta ? 1 : 0,
         static_cast<unsigned long long>(data), static_cast<unsigned long long>(offset),
         static_cast<long long>(numel), sizes.size(), numbers);
  }

  static unsigned long long Number(Tensor tensor) { return reinterpret_cast<uintptr_t>(tensor); }

  void Nodes() {
    Tensor x = Make({2});
    set_requires_grad_(x, true);
    const auto node = [&](const char* name, auto make) {
      const uint64_t sequence = symbols_.peek();
      Tell("expect-sequence");
      Tensor y = Keep(make());
      const uintptr_t* pointer = grad_fn_(&y);
      Tell("native-node %llu %llu %s", static_cast<unsigned long long>(pointer != nullptr ? *pointer : 0),
           static_cast<unsigned long long>(sequence), name);
      return y;
    };
    const Scalar one(int64_t{1});
    Tensor y = node("MulBackward0", [&] { return multiply_(&x, &x); });
    Tensor z = node("AddBackward0", [&] { return add_(&x, &y, &one); });
    Tensor w = node("MulBackward0", [&] { return multiply_(&y, &z); });
    node("AddBackward0", [&] { return add_(&w, &x, &one); });
    set_grad_mode_(false);
    Tell("expect-no-sequence");
    Keep(multiply_(&x, &x));
  }

  void Operands() {
    Tensor a = Make({3, 5, 7}), b = Make({3, 5, 7}), c = Make({4, 6}), d = Make({4, 6}), e = Make({4, 6});
    TellTensor(a, {3, 5, 7}, {35, 7, 1});
    TellTensor(b, {3, 5, 7}, {35, 7, 1});
    TellTensor(c, {4, 6}, {6, 1});
    TellTensor(Make({5, 3}, kF64), {5, 3}, {3, 1}, kF64);
    TellTensor(Make({11}, kI64), {11}, {1}, kI64);
    TellTensor(Make({2, 2}, kBool), {2, 2}, {2, 1}, kBool);
    TellTensor(Make({2, 2, 2, 2, 3}), {2, 2, 2, 2, 3}, {24, 12, 6, 3, 1});
    TellTensor(Make({2, 3, 2, 2, 3, 2}), {2, 3, 2, 2, 3, 2}, {72, 24, 12, 6, 2, 1});
    TellTensor(Make({3, 5}, kF32, true), {3, 5}, {5, 1}, kF32, true);
    TellTensor(Make({7}, kF64, true), {7}, {1}, kF64, true);

    if (diagonal_ != nullptr) {
      TellTensor(Keep(diagonal_(&c, 2, 0, 1)), {4}, {7}, kF32, false, 2);
      TellTensor(Keep(diagonal_(&c, -1, 0, 1)), {3}, {7}, kF32, false, 6);
    }
    const int64_t order[] = {2, 0, 1};
    Tell("expect aten::permute T%llu L2,0,1", Number(a));
    Tensor turned = Keep(permute_(&a, {order, 3}));
    TellTensor(turned, {7, 3, 5}, {1, 35, 7});
    const int64_t dims[] = {0, 1};
    Tell("expect aten::flip T%llu L0,1", Number(c));
    Keep(flip_(&c, {dims, 2}));
    Tell("expect aten::flip T%llu L1", Number(c));
    Keep(flip_(&c, {dims + 1, 1}));

    const Scalar three(int64_t{3}), five(int64_t{5}), two_and_half(2.5), quarter(0.25);
    Tell("expect aten::add T%llu T%llu I3", Number(a), Number(b));
    Keep(add_(&a, &b, &three));
    Tell("expect aten::add T%llu T%llu D2.5", Number(c), Number(d));
    Keep(add_(&c, &d, &two_and_half));
    Tell("expect aten::add T%llu T%llu D0.25", Number(a), Number(b));
    Keep(add_(&a, &b, &quarter));
    Tell("expect aten::add_ T%llu T%llu I3 > T%llu", Number(c), Number(d), Number(c));
    add_in_place_(&c, &d, &three);
    Tell("expect aten::add_ T%llu T%llu I5 > T%llu", Number(a), Number(b), Number(a));
    add_in_place_(&a, &b, &five);
    Tell("expect aten::mul T%llu T%llu T%llu > T%llu", Number(c), Number(d), Number(e), Number(e));
    multiply_into_(&c, &d, &e);

    Tell("expect aten::cumsum T%llu I1 N", Number(c));
    Keep(cumsum_(&c, 1, 0));
    Tell("expect aten::cumsum T%llu I0 N", Number(a));
    Keep(cumsum_(&a, 0, 0));
    Tensor flags = Make({2, 3}, kBool);
    Tell("expect aten::any T%llu I1 B1", Number(flags));
    Keep(any_(&flags, 1, true));
    Tell("expect aten::any T%llu I0 B0", Number(flags));
    Keep(any_(&flags, 0, false));

    const Tensor pair[] = {c, d}, triple[] = {c, e, d};
    Tell("expect aten::stack M%llu,%llu I1", Number(c), Number(d));
    Keep(stack_({pair, 2}, 1));
    Tell("expect aten::stack M%llu,%llu,%llu I0", Number(c), Number(e), Number(d));
    Keep(stack_({triple, 3}, 0));
  }

  void* torch_;
  const TorchSymbols& symbols_;
  Calibrator* calibrator_;
  const char* missing_ = nullptr;
  bool old_optional_ = false;
  Empty empty_ = nullptr;
  Cumsum cumsum_ = nullptr;
  Returned (*add_)(const Tensor*, const Tensor*, const Scalar*) = nullptr;
  Tensor* (*add_in_place_)(Tensor*, const Tensor*, const Scalar*) = nullptr;
  Returned (*multiply_)(const Tensor*, const Tensor*) = nullptr;
  Tensor* (*multiply_into_)(const Tensor*, const Tensor*, Tensor*) = nullptr;
  Returned (*stack_)(ArrayRef<Tensor>, int64_t) = nullptr;
  Returned (*any_)(const Tensor*, int64_t, bool) = nullptr;
  Returned (*flip_)(const Tensor*, ArrayRef<int64_t>) = nullptr;
  Returned (*permute_)(const Tensor*, ArrayRef<int64_t>) = nullptr;
  Returned (*diagonal_)(const Tensor*, int64_t offset, int64_t, int64_t) = nullptr;  // may be null
  const uintptr_t* (*grad_fn_)(const Tensor*) = nullptr;
  void* (*float_data_)(const Tensor*) = nullptr;
  void* (*double_data_)(const Tensor*) = nullptr;
  void* (*integer_data_)(const Tensor*) = nullptr;
  void* (*bool_data_)(const Tensor*) = nullptr;
  void (*set_requires_grad_)(Tensor, bool) = nullptr;
  void (*set_grad_mode_)(bool) = nullptr;
};

}  // namespace

CalibrationResult CalibrateNative(const TorchSymbols& symbols, bool operands) {
  // What was found holds as long as the process lives, which may be attached to often.
  static CalibrationResult known[2];
  CalibrationResult& result = known[operands ? 1 : 0];
  if (result.layouts.node.valid) return result;
  result = {};
  if (!symbols.can_calibrate()) {
    result.missing = "functions of libtorch not found: " + symbols.missing;
    return result;
  }
  Calibrator calibrator(symbols);
  Driver driver(symbols.torch, symbols.c10, symbols, &calibrator);
  if (driver.missing() != nullptr) {
    result.missing = std::string("no calibration without ") + driver.missing();
    return result;
  }
  const char* error = "";
  {
    const CalibratorCallbacks callbacks(&calibrator, symbols, operands);
    try {
      driver.Run(operands);
    } catch (...) {
      error = "torch has thrown";
    }
  }
  calibrator.Finish(operands, error, &result);
  return result;
}

}  // namespace rfinject
