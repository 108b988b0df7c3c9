// File: print_report.h
//
// What `report` and `run --report` share.
#ifndef RFINJECT_CLI_CMD_PRINT_REPORT_H_
#define RFINJECT_CLI_CMD_PRINT_REPORT_H_

#include "cli/emit/emit.h"

namespace rfinject::cli {

// The width and colour that the terminal behind `fd` has; 80 columns without colour where it is none.
TableOptions TableOptionsFor(int fd);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_PRINT_REPORT_H_
