// File: manual.h
//
// Makes the manual page, rfinject(1), from the verbs' tables of options.
#ifndef RFINJECT_CLI_CMD_MANUAL_H_
#define RFINJECT_CLI_CMD_MANUAL_H_

#include <string>
#include <string_view>

namespace rfinject::cli {

// Returns the page in troff with the macros of man(7), which man and mandoc read.
std::string ManualPage(std::string_view version);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_MANUAL_H_
