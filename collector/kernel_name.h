// File: kernel_name.h
//
// Makes the name of a kernel readable: CUPTI gives the one that the compiler has mangled. This is done here and not
// where traces are read, because a few letters of a mangled name can stand for gigabytes: a trace may come from
// anybody, while these are the program's own kernels.
#ifndef RFINJECT_COLLECTOR_KERNEL_NAME_H_
#define RFINJECT_COLLECTOR_KERNEL_NAME_H_

#include <string>

namespace rfinject {

// "_ZN2at6native4copyIfEEvi" is "void at::native::copy<float>(int)". A name that is not mangled stays what it is. May
// throw std::bad_alloc.
std::string ReadableKernelName(const char* name);

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_KERNEL_NAME_H_
