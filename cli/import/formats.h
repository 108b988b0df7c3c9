// File: formats.h
//
// The files of other tools that can be imported. One more is a row of the table in formats.cc beside the function
// that reads it: `rfinject import`, its help, and every command that takes traces know it then.
#ifndef RFINJECT_CLI_IMPORT_FORMATS_H_
#define RFINJECT_CLI_IMPORT_FORMATS_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/import/imported.h"

namespace rfinject::cli {

struct ImportFormat {
  std::string_view name;                      // as `rfinject import NAME` has it
  std::string_view what;                      // what the file is, for the help
  std::span<const std::string_view> endings;  // of such files' names in a folder
  bool names_gpu;                             // whether such a file says what it ran on
  bool may_be_packed;                         // whether it is read from a packed file as well
  // Whether a file is one, by what it begins with: its bytes, unpacked where such a file may be packed.
  bool (*recognises)(std::string_view beginning);
  absl::StatusOr<Imported> (*import)(const std::string& path, const ImportOptions& options);
};

// In the order in which the help has them.
std::span<const ImportFormat> ImportFormats();
// The format of that name; null when there is none.
const ImportFormat* FindImportFormat(std::string_view name);
// The names, "ncu, nsys, torch or et".
std::string ImportFormatNames();

// The format of a regular file, by its content; null where it is none of them, and where it cannot be read. Never
// waits.
const ImportFormat* RecogniseImport(const std::string& path);

// Why a packed file that is recognised as nothing cannot be read: "a ZIP archive whose first file is encrypted", or
// which command unpacks it.
// Empty for a file that is not packed, or cannot be opened.
std::string WhyPackedIsNothing(const std::string& path);

// The files right in `folder` whose names end as one of the format's do, sorted; null: of any format. Fails where the
// folder cannot be listed.
absl::StatusOr<std::vector<std::string>> FilesToImport(const std::string& folder, const ImportFormat* format);

// Imports the file, with model and GPU taken from its name (file_name.h) where neither options nor the file say them.
// A line among the warnings says where the name leaves several GPUs open.
absl::StatusOr<Imported> ImportFile(const ImportFormat& format, const std::string& path, ImportOptions options);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_FORMATS_H_
