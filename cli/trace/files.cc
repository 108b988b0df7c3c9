#include "cli/trace/files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace rfinject::cli {

absl::StatusOr<std::vector<std::string>> FindTraces(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return absl::NotFoundError("no such file or folder");
  if (error) return absl::UnavailableError(error.message());
  if (status.type() != fs::file_type::directory) return std::vector<std::string>{path};
  std::vector<std::string> found;
  fs::recursive_directory_iterator it(path, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    std::error_code entry_error;
    if (it->path().extension() == ".rfx" && it->symlink_status(entry_error).type() == fs::file_type::regular) {
      found.push_back(it->path().string());
    }
  }
  if (error) return absl::UnavailableError(error.message());
  if (found.empty()) return absl::NotFoundError("there are no traces (*.rfx) in this folder; 'rfinject PROGRAM' writes them");
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace rfinject::cli
