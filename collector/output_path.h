// File: output_path.h
//
// Makes a new, empty file that is ours alone, from what the user gave as output.
#ifndef RFINJECT_COLLECTOR_OUTPUT_PATH_H_
#define RFINJECT_COLLECTOR_OUTPUT_PATH_H_

#include <string>
#include <string_view>

namespace rfinject {

// The values of the placeholders.
struct OutputNames {
  std::string host;
  std::string pid;
  std::string rank;  // empty: not a distributed job
};
// Takes them from uname, getpid and the environment (RANK and the like, process_facts.h).
OutputNames CurrentOutputNames();

// Returns `pattern` with its placeholders replaced: %h host, %p pid, %r rank ("0" if there is none), %q{ENV} the
// variable's value (empty if unset), %% a percent sign; anything else after a % stays as it is. A pattern that ends
// in '/' (or is empty, or names an existing folder) gets "%h.%p.rfx" appended, or "%h.%p.r%r.rfx" where a rank is
// known. May throw std::bad_alloc.
std::string ExpandOutput(std::string_view pattern, const OutputNames& names);

// Returns `text` written such that ExpandOutput gives it back.
std::string EscapeOutput(std::string_view text);

// Creates the file (0600), and the folders above it that do not exist (0700). Where the file exists already, in
// whatever form, "-1", "-2", … is put before its ".rfx" (or at its end). Folders that are symbolic links are
// followed, but not one that somebody else could have planted: a link in a world-writable sticky folder must be owned
// by us. Returns a descriptor (O_WRONLY, O_APPEND, O_CLOEXEC) and the name used in `*path`; or -1, and why in
// `*error`, a clause that begins with the path.  May throw std::bad_alloc.
int CreateOutputFile(std::string* path, std::string* error);

// Lets the link `latest` beside the folder of `file` name that folder: "rfinject-out/latest" ->
// "20260102-030405-train" for "/x/rfinject-out/20260102-030405-train/host.7.rfx". The link is replaced in one step,
// and never followed. What is no link, and a folder that somebody else owns or may write to, is left alone. Returns
// false when there is no such link afterwards. May throw std::bad_alloc.
bool LinkLatest(const std::string& file);

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_OUTPUT_PATH_H_
