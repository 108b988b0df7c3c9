#include "cli/testing/real_runs.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "cli/trace/read.h"

namespace rfinject::cli::testing {

std::string RealRunsFolder() {
  for (std::filesystem::path at = std::filesystem::current_path(); at != at.root_path(); at = at.parent_path()) {
    const std::filesystem::path runs = at / "shared" / "h100" / "runs";
    if (std::filesystem::is_directory(runs)) return runs;
  }
  return {};
}

Profile ReadRealRun(const std::string& name) {
  FileSource source;
  const bool opened = source.Open(RealRunsFolder() + "/" + name + ".rfx").ok();
  TraceContents contents = ReadTrace(source);
  if (!opened || !contents.status.ok()) {
    std::fprintf(stderr, "cannot read the run %s\n", name.c_str());
    std::abort();
  }
  return std::move(contents.profile);
}

}  // namespace rfinject::cli::testing
