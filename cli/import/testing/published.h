// File: published.h
//
// Recordings of real GPUs that others published. They lie beside the tree (../shared/recordings) and not everywhere.
//
//   const std::string file = Published("pytorch_profiler/h100_bert_small.json.gz");
//   if (file.empty()) GTEST_SKIP() << kNotPublishedHere;
#ifndef RFINJECT_CLI_IMPORT_TESTING_PUBLISHED_H_
#define RFINJECT_CLI_IMPORT_TESTING_PUBLISHED_H_

#include <filesystem>
#include <string>

namespace rfinject::cli {

inline constexpr char kNotPublishedHere[] = "note: ../shared/recordings is not here";

// The file, looked for from the working folder upwards; empty where it is not.
inline std::string Published(const std::string& name) {
  for (std::filesystem::path at = std::filesystem::current_path(); at != at.root_path(); at = at.parent_path()) {
    const std::filesystem::path file = at / "shared" / "recordings" / name;
    if (std::filesystem::exists(file)) return file;
  }
  return {};
}

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_TESTING_PUBLISHED_H_
