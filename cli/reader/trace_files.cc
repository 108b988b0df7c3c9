#include "cli/reader/trace_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace rfinject::cli {

std::string FindTraces(const std::string& path, std::vector<std::string>* files) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return "no such file or folder";
  if (error) return error.message();
  if (status.type() != fs::file_type::directory) {
    files->push_back(path);
    return {};
  }
  std::vector<std::string> found;
  fs::recursive_directory_iterator it(path, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    std::error_code entry_error;
    if (it->path().extension() == ".rfx" && it->symlink_status(entry_error).type() == fs::file_type::regular) {
      found.push_back(it->path().string());
    }
  }
  if (error) return error.message();
  if (found.empty()) return "there are no traces (*.rfx) in this folder";
  std::sort(found.begin(), found.end());
  files->insert(files->end(), found.begin(), found.end());
  return {};
}

}  // namespace rfinject::cli
