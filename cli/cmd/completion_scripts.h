// File: completion_scripts.h
//
// What shells complete after `rfinject`, made of what the verbs say of themselves. Each script works sourced and as
// the file that the shell loads by itself, and needs nothing but the shell.
#ifndef RFINJECT_CLI_CMD_COMPLETION_SCRIPTS_H_
#define RFINJECT_CLI_CMD_COMPLETION_SCRIPTS_H_

#include <string>

namespace rfinject::cli {

std::string BashCompletion();
std::string ZshCompletion();
std::string FishCompletion();

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_COMPLETION_SCRIPTS_H_
