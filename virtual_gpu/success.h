// File: success.h
//
// What most calls of NVIDIA's libraries come to here: they write one value, or delete one object, and succeed.
#ifndef RFINJECT_VIRTUAL_GPU_SUCCESS_H_
#define RFINJECT_VIRTUAL_GPU_SUCCESS_H_

namespace rfinject::virtual_gpu {

// The status of success, which is 0 in the enumeration of every library.
struct Success {
  template <typename Status>
  constexpr operator Status() const {
    return static_cast<Status>(0);
  }
};

// Writes what the caller asks for, or what it sets.
template <typename To, typename Value>
Success Set(To* to, Value value) {
  *to = value;
  return {};
}

template <typename Object>
Success Unmake(Object* object) {
  delete object;
  return {};
}

}  // namespace rfinject::virtual_gpu

#endif  // RFINJECT_VIRTUAL_GPU_SUCCESS_H_
