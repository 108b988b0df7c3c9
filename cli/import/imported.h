// File: imported.h
//
// What every import takes and returns.
#ifndef RFINJECT_CLI_IMPORT_IMPORTED_H_
#define RFINJECT_CLI_IMPORT_IMPORTED_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cli/import/numbers.h"
#include "cli/profile/profile.h"

namespace rfinject::cli {

struct ImportOptions {
  std::string gpu;                       // row of gpus.csv; empty: unknown, the file tells what it can
  bool gpu_is_guessed = false;           // from the file's name: what the file says counts before it
  std::string likely_gpu;                // what the file's name says, for a file that does not tell
  std::string likely_model;              // what its name says of the model
  std::string model;                     // name for what the file holds; empty: the file's own word for it
  std::string execution_trace;           // file with the shapes of a recording of torch.profiler; empty: none
  std::string estimate;                  // row of gpus.csv that an execution trace is costed for
  std::shared_ptr<const Profile> names;  // of the same program, with its layers; null: none
  // How many events of a recording of torch.profiler are unpacked at once (torch/windows.h), about; fewer in tests.
  // With its place in the tree one takes some 90 bytes, so these 24 MB.
  uint64_t torch_window_events = uint64_t{1} << 18;
  DecimalMark decimal = DecimalMark::kUnknown;  // kUnknown: the file tells
};

// A file that was read. A function that imports gives absl::StatusOr of it: what could not be imported fails with the
// file, the line where there is one, and the reason.
struct Imported {
  Profile profile;
  uint64_t rows = 0;                  // data lines read
  uint64_t kernels = 0;               // launches found
  uint64_t skipped_lines = 0;         // lines that are no part of the table
  std::vector<std::string> warnings;  // one line each, with the file's name
};

// Says that the profile has a metric whose values are whole numbers of `unit`.
inline void DefineMetric(std::string_view name, std::string_view unit, Profile* profile) {
  profile->metrics[std::string(name)] = {.name = std::string(name), .unit = std::string(unit)};
}

// Whether a diagnostic of this id, which an import said of a file, means that its sums cannot be trusted: events,
// lines or times are lost, or cannot be.
bool DoubtsSums(std::string_view diagnostic_id);

// A time as reports write it, "3.00 s", "64.9 us"; `ns` below 1000 are "7 ns".
std::string TimeText(double ns);

// A failure to read `file`, which is named before the reason.
inline absl::Status FailureOf(const std::string& file, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(file, ": ", status.message()));
}

// Bounds what the launch keys of one file take, as the reader of traces does: a name is kept for each key that has
// it, so a file of some megabytes can name thousands of them by a text of megabytes.
class KeyMemory {
 public:
  explicit KeyMemory(uint64_t most_bytes = uint64_t{2} << 30) : left_(most_bytes) {}

  // Whether a new key still fits. What `key` takes is counted once for each call.
  bool Fits(const LaunchKey& key) {
    constexpr uint64_t kWithoutNames = 512;  // bytes of a key and its statistics
    const uint64_t bytes = kWithoutNames + key.kernel.size() + key.op.size() + key.signature.size() +
                           key.layer.model.size() + key.layer.path.size();
    const bool fits = bytes <= left_;
    left_ -= fits ? bytes : left_;
    return fits;
  }

 private:
  uint64_t left_;
};
// What stands for the operator of a launch whose call is not in the file.
inline constexpr char kLaunchNotInFile[] = "(launch not in the file)";
inline constexpr char kTooManyKeys[] = "holds more distinct launch keys than fit in memory";

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_IMPORTED_H_
