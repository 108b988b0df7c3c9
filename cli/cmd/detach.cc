// `rfinject detach`: has processes that were attached to run as before.
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "cli/attach/attachable.h"
#include "cli/cmd/attached.h"
#include "cli/cmd/commands.h"
#include "cli/cmd/options.h"
#include "cli/cmd/streams.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kDetachUsage =
    "rfinject detach [--wait SECONDS] PID...\n"
    "rfinject detach [--wait SECONDS] --job NAME\n\n"
    "Ends what `rfinject attach` began: the trace is closed, and the process runs as before. The library stays in\n"
    "its memory, does nothing there, and can be attached again.";

}  // namespace

VerbHelp DetachHelp() { return {kDetachUsage, {kJobOption, kWaitOption}}; }

int DetachMain(const ParsedOptions& parsed) {
  absl::Duration patience;
  std::vector<Target> targets;
  if (const int code = ReadAttachWords("detach", parsed, &targets, &patience)) return code;
  int code = 0;
  for (const Target target : targets) {
    const absl::StatusOr<Attachable> process = Attachable::Open(target.pid);
    bool done = Succeeded(process.status());
    if (done && process->library().empty()) {
      // Of a job some ranks may be measured, and others not.
      if (!target.named && targets.size() > 1) continue;
      Complain(absl::StrCat("process ", target.pid, " has no rfinject in it"));
      done = false;
    }
    if (done) done = Succeeded(process->CallLibrary(process->library(), "rfinject_detach", nullptr, patience));
    if (!done) code = 1;
  }
  return code;
}

}  // namespace rfinject::cli
