// File: mock_objects.h
//
// Objects laid out as torch lays out its own, for tests. Not torch's code: only the order and the sizes of what we
// read.
#ifndef RFINJECT_INJECTOR_TORCH_MOCK_OBJECTS_H_
#define RFINJECT_INJECTOR_TORCH_MOCK_OBJECTS_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace rfinject::mock {

struct Storage {
  void* table = nullptr;
  uint64_t counts[2] = {1, 1};
  void* data = nullptr;
  void* context = nullptr;  // the CPU allocator's: the data again
};

// The device as std::optional (engaged behind) and as c10::optional had it (engaged in front).
template <bool kEngagedFirst>
struct Device;
template <>
struct Device<false> {
  int8_t type;
  int8_t index = -1;
  uint8_t engaged = 1;
};
template <>
struct Device<true> {
  uint8_t engaged = 1;
  int8_t type;
  int8_t index = -1;
};

template <bool kEngagedFirst>
struct Tensor {
  void* table = nullptr;
  uint64_t counts[2] = {1, 1};
  Storage* storage = nullptr;
  void* autograd = nullptr;
  void* extra = nullptr;
  uint64_t version = 0;
  uint64_t rank = 0;
  union {
    int64_t* outside;
    int64_t inside[10];
  };
  int64_t storage_offset = 0;
  uint64_t numel = 1;
  uint16_t dtype = 0;
  Device<kEngagedFirst> device;
  uint64_t keys = 0x8001;

  Tensor(Storage* at, uint16_t type, std::vector<int64_t> sizes, std::vector<int64_t> strides, int8_t device_type = 0)
      : storage(at), rank(sizes.size()), inside{}, dtype(type) {
    device.type = device_type;
    for (int64_t size : sizes) numel *= static_cast<uint64_t>(size);
    if (rank <= 5) {
      for (size_t i = 0; i < rank; ++i) {
        inside[i] = sizes[i];
        inside[5 + i] = strides[i];
      }
      return;
    }
    outside = new int64_t[2 * rank];
    for (size_t i = 0; i < rank; ++i) {
      outside[i] = sizes[i];
      outside[rank + i] = strides[i];
    }
  }
  ~Tensor() {
    if (rank > 5) delete[] outside;
  }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;
};

enum Tag : uint32_t { kNone = 0, kTensor = 1, kDouble = 3, kInt = 5, kBool = 9, kString = 12, kList = 13 };

struct Value {
  uint64_t payload = 0;
  uint32_t tag = kNone;
};
static_assert(sizeof(Value) == 16);

struct List {
  void* table = nullptr;
  uint64_t counts[2] = {1, 1};
  std::vector<Value> values;
};

// at::RecordFunction, built by mock_record.cc once for each ABI of std::string.
struct RecordFacts {
  size_t size;
  size_t sequence;
  size_t inputs;
  size_t outputs;
  size_t forward_thread;
};
void* NewRecord(int64_t sequence, uint64_t forward_thread, const Value* inputs, size_t count);
RecordFacts FactsOfRecord();
void* NewOldStringRecord(int64_t sequence, uint64_t forward_thread, const Value* inputs, size_t count);
RecordFacts FactsOfOldStringRecord();

}  // namespace rfinject::mock

#endif  // RFINJECT_INJECTOR_TORCH_MOCK_OBJECTS_H_
