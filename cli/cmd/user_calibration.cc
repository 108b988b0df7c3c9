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

absl::StatusOr<Calibration> ChosenCalibration(const ParsedOptions& parsed) {
  Calibration calibration = Calibration::Shipped();
  const bool named = parsed.Has(kCalibrationOption.name);
  const std::string path = named ? parsed.Value(kCalibrationOption.name) : UserCalibrationPath();
  if (path == "none" || (path.empty() && !named)) return calibration;
  const absl::StatusOr<std::string> text = ReadCalibration(path, named ? WhoseFile::kAnybodys : WhoseFile::kOwn);
  if (!named && absl::IsNotFound(text.status())) return calibration;
  std::string error;
  if (text.ok() && calibration.AddOwn(*text, error)) return calibration;
  absl::Status status =
      text.ok() ? absl::FailedPreconditionError(absl::StrCat(path, " is not used: ", error)) : text.status();
  if (named) return status;
  Succeeded(status);
  return Calibration::Shipped();
}

}  // namespace rfinject::cli
