// File: kernel_name.h
//
// What a kernel is called where there is room for a few words.
#ifndef RFINJECT_CLI_REPORT_ROWS_KERNEL_NAME_H_
#define RFINJECT_CLI_REPORT_ROWS_KERNEL_NAME_H_

#include <string>
#include <string_view>

namespace rfinject::cli {

// The function's name without namespaces, arguments and result; of its template arguments only the one that says what
// it does, if there is one:
//   "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, …>(int, …)"
// is "vectorized_elementwise_kernel<FillFunctor>". Other names stay as they are.
std::string ShortKernelName(std::string_view kernel);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_ROWS_KERNEL_NAME_H_
