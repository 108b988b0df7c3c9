// File: trace_files.h
//
// From what the user names to the trace files that are meant.
#ifndef RFINJECT_CLI_READER_TRACE_FILES_H_
#define RFINJECT_CLI_READER_TRACE_FILES_H_

#include <string>
#include <vector>

namespace rfinject::cli {

// Appends to `files`: a file that is named, whatever it is called; of a folder all *.rfx in it and below, sorted.
// Links are followed where the user names them and not within folders. Empty on success, otherwise why not.
std::string FindTraces(const std::string& path, std::vector<std::string>* files);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_READER_TRACE_FILES_H_
