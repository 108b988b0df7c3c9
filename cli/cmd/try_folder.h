// File: try_folder.h
//
// A folder that a program believes is its own and that stays as it was: an overlay over the working folder, in a user
// and mount namespace of the program's own, so that no privilege is needed and nothing is left when it ends.
#ifndef RFINJECT_CLI_CMD_TRY_FOLDER_H_
#define RFINJECT_CLI_CMD_TRY_FOLDER_H_

#include <string>

#include "absl/status/status.h"

namespace rfinject::cli {

// Called in a child of fork: from then on, what this process and its children write below `folder` (absolute, the
// working folder) goes into `scratch`, which must lie outside of it and exist. The working folder is still `folder`.
// A failure says which step this kernel refuses.
absl::Status CopyOnWrite(const std::string& folder, const std::string& scratch);

// Whether CopyOnWrite works here, tried in a child.
absl::Status CanCopyOnWrite(const std::string& folder, const std::string& scratch);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_TRY_FOLDER_H_
