#include "cli/cmd/user_calibration.h"

#include <cstddef>
#include <cstdlib>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cli/cmd/streams.h"

namespace rfinject::cli {

std::string UserCalibrationPath() {
  if (std::getenv("RFINJECT_CONFIG") != nullptr) return {};
  const std::string folder = UserConfigFolder();
  return folder.empty() ? folder : folder + "/rfinject/calibration.csv";
}

absl::StatusOr<std::string> ReadCalibration(const std::string& path, WhoseFile whose) {
  constexpr size_t kMostKib = 1024;  // every GPU of the table several times over
  UserFile file = ReadUserFile(path, kMostKib, whose);
  const std::string message = absl::StrCat(path, " is not used: ", file.ignored);
  if (!file.exists) return absl::NotFoundError(message);
  if (!file.ignored.empty()) return absl::FailedPreconditionError(message);
  return std::move(file.text);
}

bool ChooseCalibration(const ParsedOptions& parsed, Calibration* calibration, int* code) {
  *calibration = Calibration::Shipped();
  const bool named = parsed.Has(kCalibrationOption.name);
  const std::string path = named ? parsed.Value(kCalibrationOption.name) : UserCalibrationPath();
  if (path == "none" || (path.empty() && !named)) return true;
  const absl::StatusOr<std::string> text = ReadCalibration(path, named ? WhoseFile::kAnybodys : WhoseFile::kOwn);
  if (!named && absl::IsNotFound(text.status())) return true;
  std::string error;
  if (!text.ok()) {
    Succeeded(text.status());
  } else if (!calibration->AddOwn(*text, error)) {
    Complain(absl::StrCat(path, " is not used: ", error));
  } else {
    return true;
  }
  *code = 1;
  return !named;
}

}  // namespace rfinject::cli
