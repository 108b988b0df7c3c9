#include "cli/trace/files.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "cli/trace/frames.h"
#include "proto/wire/framing.h"

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
    // The folder's own listing knows this of each entry mostly, where symlink_status would ask for it.
    if (it->path().extension() == ".rfx" && !it->is_symlink(entry_error) && it->is_regular_file(entry_error)) {
      found.push_back(it->path().string());
    }
  }
  if (error) return absl::UnavailableError(error.message());
  if (found.empty())
    return absl::NotFoundError(
        "there are no traces (*.rfx) in this folder; 'rfinject PROGRAM' writes them, where it calls a "
        "model with parameters or steps an optimizer");
  std::sort(found.begin(), found.end());
  return found;
}

bool IsTraceFile(const std::string& path) {
  FileSource source;
  char magic[sizeof wire::kFileMagic] = {};
  return source.Open(path).ok() && source.ReadAt(0, magic, sizeof magic).ok() &&
         std::memcmp(magic, wire::kFileMagic, sizeof magic) == 0;
}

int64_t ChangedUnixNs(const struct stat& status) {
  constexpr int64_t kLastSecond = 9'000'000'000;  // in 2255
  return std::clamp<int64_t>(status.st_mtim.tv_sec, 0, kLastSecond) * 1'000'000'000 + status.st_mtim.tv_nsec;
}

}  // namespace rfinject::cli
