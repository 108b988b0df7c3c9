#include "virtual_gpu/libraries/reduce.h"

#include <stdint.h>
#include <string.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

namespace rfinject::virtual_gpu {
namespace {

// IEEE half precision, for compilers that have no type for it.
struct Half {
  uint16_t bits;
  operator float() const {
    const int exponent = bits >> 10 & 31;
    const int fraction = bits & 1023;
    const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
    if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
    return sign * std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  }
  static Half From(float value) {
    const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
    const float size = std::fabs(value);
    if (std::isnan(value)) return {0x7e00};
    if (size >= 65520.0f) return {static_cast<uint16_t>(sign | 0x7c00)};
    int exponent = -24;                          // zero is a number below 2^-14
    if (size != 0) std::frexp(size, &exponent);  // size = 0.5 to 1, times 2^exponent
    // The unit of the last place: 2^-24 below 2^-14, where numbers lose their leading one.
    const int unit = std::max(exponent - 11, -24);
    const auto steps = static_cast<int>(std::nearbyint(std::ldexp(size, -unit)));
    // One step more than the fraction holds carries into the exponent, as it should.
    const int bits = unit == -24 ? steps : ((unit + 24) << 10) + steps;
    return {static_cast<uint16_t>(sign | bits)};
  }
};

struct Brain {  // bfloat16: the upper half of a float
  uint16_t bits;
  operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
  static Brain From(float value) {
    if (std::isnan(value)) return {0x7fc0};
    const auto whole = std::bit_cast<uint32_t>(value);
    return {static_cast<uint16_t>((whole + 0x7fff + (whole >> 16 & 1)) >> 16)};
  }
};

template <typename T>
T Make(auto value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(value);
  } else {
    return T::From(static_cast<float>(value));
  }
}

template <typename T>
T Combine(ncclRedOp_t operation, T a, T b) {
  // Whole numbers wrap around, as they do on a GPU.
  using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t,
                                  std::conditional_t<std::is_same_v<T, double>, double, float>>;
  switch (operation) {
    case ncclProd:
      return Make<T>(static_cast<Wide>(a) * static_cast<Wide>(b));
    case ncclMax:
      return a < b ? b : a;
    case ncclMin:
      return b < a ? b : a;
    default:
      return Make<T>(static_cast<Wide>(a) + static_cast<Wide>(b));
  }
}

// Calls `visit` with a value of the type that NCCL's enumerator names.
template <typename Visit>
void WithType(ncclDataType_t type, const Visit& visit) {
  switch (type) {
    case ncclInt8:
      return visit(int8_t{});
    case ncclUint8:
      return visit(uint8_t{});
    case ncclInt32:
      return visit(int32_t{});
    case ncclUint32:
      return visit(uint32_t{});
    case ncclInt64:
      return visit(int64_t{});
    case ncclUint64:
      return visit(uint64_t{});
    case ncclFloat16:
      return visit(Half{});
    case ncclBfloat16:
      return visit(Brain{});
    case ncclFloat32:
      return visit(float{});
    case ncclFloat64:
      return visit(double{});
    default:
      return;
  }
}

}  // namespace

size_t Bytes(ncclDataType_t type) {
  size_t bytes = 1;  // the types of eight bits that have no arithmetic here
  WithType(type, [&bytes](auto value) { bytes = sizeof value; });
  return bytes;
}

void Reduce(ncclRedOp_t operation, ncclDataType_t type, size_t count, void* into, const void* other) {
  WithType(type, [&](auto element) {
    using T = decltype(element);
    auto* to = static_cast<T*>(into);
    const auto* from = static_cast<const T*>(other);
    for (size_t i = 0; i < count; ++i) to[i] = Combine(operation, to[i], from[i]);
  });
}

void Average(ncclDataType_t type, size_t count, int ranks, void* values) {
  WithType(type, [&](auto element) {
    using T = decltype(element);
    auto* value = static_cast<T*>(values);
    for (size_t i = 0; i < count; ++i) {
      if constexpr (std::is_integral_v<T>) {
        value[i] = static_cast<T>(value[i] / static_cast<T>(ranks));
      } else if constexpr (std::is_same_v<T, double>) {
        value[i] /= ranks;
      } else {
        value[i] = Make<T>(static_cast<float>(value[i]) / static_cast<float>(ranks));
      }
    }
  });
}

}  // namespace rfinject::virtual_gpu
