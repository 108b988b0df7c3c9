// File: user_file.h
//
// Reads the files in which a user keeps settings: says where they are, and when they may be used.
#ifndef RFINJECT_CLI_CMD_USER_FILE_H_
#define RFINJECT_CLI_CMD_USER_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace rfinject::cli {

// $XDG_CONFIG_HOME, else ~/.config; empty where the environment names neither by an absolute path.
std::string UserConfigFolder();

enum class WhoseFile : uint8_t {
  kAnybodys,  // the command line names it
  kOwn,       // found by itself: used only if it is the user's (or root's) and nobody else may write to it
};

struct UserFile {
  bool exists = false;
  std::string text;
  std::string ignored;  // why it may not be used, in a clause; empty: it may
};

// A plain file of at most `most_kib` KiB.
UserFile ReadUserFile(const std::string& path, size_t most_kib, WhoseFile whose);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_USER_FILE_H_
