// File: kernel_name.h
//
// The name of a kernel as a programmer reads it. CUPTI and the driver tell the one that the compiler made of it. It
// is made readable here and not where traces are read: a few letters of a name can stand for gigabytes, and a trace
// may come from anybody, while these are the program's own kernels.
#ifndef RFINJECT_COLLECTOR_KERNEL_NAME_H_
#define RFINJECT_COLLECTOR_KERNEL_NAME_H_

#include <string>

namespace rfinject {

// "_ZN2at6native4copyIfEEvi" is "void at::native::copy<float>(int)". A name that is not mangled stays what it is. May
// throw std::bad_alloc.
std::string ReadableKernelName(const char* name);

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_KERNEL_NAME_H_
