// File: known.h
//
// Which bytes of the devices' memory have the value that a GPU would have there. The driver's lock must be held,
// except for MayBeKnown.
#ifndef RFINJECT_VIRTUAL_GPU_DRIVER_KNOWN_H_
#define RFINJECT_VIRTUAL_GPU_DRIVER_KNOWN_H_

#include <stddef.h>
#include <stdint.h>

namespace rfinject::virtual_gpu {

// Notes that all of these bytes have their value, or that it is not known which of them have.
void NoteKnown(uintptr_t begin, size_t bytes);
void ForgetKnown(uintptr_t begin, size_t bytes);
// Notes of each byte of a copy what is known of the byte that it is a copy of.
void CopyKnown(uintptr_t to, uintptr_t from, size_t bytes);
// Whether all of these bytes have their value.
bool IsKnown(uintptr_t begin, size_t bytes);
// False where none of these bytes can have its value: nothing near them ever had. This is what most results of
// kernels need to ask, without the lock.
bool MayBeKnown(uintptr_t begin, size_t bytes);

}  // namespace rfinject::virtual_gpu

#endif  // RFINJECT_VIRTUAL_GPU_DRIVER_KNOWN_H_
