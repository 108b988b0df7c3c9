// File: file_name.h
//
// Reads what people put into the names of their profiles: "resnet18_v100.csv", "vgg11-A100-SXM4-40GB.ncu.csv".
#ifndef RFINJECT_CLI_IMPORT_FILE_NAME_H_
#define RFINJECT_CLI_IMPORT_FILE_NAME_H_

#include <string>
#include <string_view>
#include <vector>

namespace rfinject::cli {

struct NamedRun {
  std::string model;  // what is left of the name; "program" if nothing is
  std::string gpu;    // a row of gpus.csv, or empty
  // The rows that the name could mean as well; not empty when `gpu` is only the first of several.
  std::vector<std::string> other_gpus;
};

// What to do with a file that another profiler wrote, by the ending of its name, where a trace or another form of it
// is wanted: "Nsight Systems' own format: nsys export …"; empty for every other name.
std::string OtherProfileRemedy(std::string_view path);

// Takes the last component of `path` apart. A GPU is found by a row's whole name or by its first word ("v100"),
// without regard to case.
NamedRun RunOfFileName(std::string_view path);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_FILE_NAME_H_
