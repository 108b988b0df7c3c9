// File: completion_scripts.h
//
// Makes the scripts by which shells complete words after `rfinject`, from the verbs' tables of options. Each script
// can be sourced, or be the file that the shell loads by itself; it needs nothing but the shell.
#ifndef RFINJECT_CLI_CMD_COMPLETION_SCRIPTS_H_
#define RFINJECT_CLI_CMD_COMPLETION_SCRIPTS_H_

#include <string>

namespace rfinject::cli {

std::string BashCompletion();
std::string ZshCompletion();
std::string FishCompletion();

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_COMPLETION_SCRIPTS_H_
