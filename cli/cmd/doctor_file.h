// File: doctor_file.h
//
// `rfinject doctor FILE...`: what other tools' files lack, and whether their sums can be trusted.
#ifndef RFINJECT_CLI_CMD_DOCTOR_FILE_H_
#define RFINJECT_CLI_CMD_DOCTOR_FILE_H_

#include <string>
#include <vector>

namespace rfinject::cli {

// Prints what is to be said of each file, as the block "About this recording" of its report has it. Returns 1 where a
// file cannot be read, or sums of one cannot be trusted; else 0.
int ExamineFiles(const std::vector<std::string>& paths);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_CMD_DOCTOR_FILE_H_
