#include "gpus/gpus.h"

#include <string>
#include <utility>
#include <vector>

#include "cli/cmd/commands.h"
#include "cli/cmd/launch.h"
#include "cli/cmd/options.h"
#include "cli/cmd/shared_options.h"
#include "cli/cmd/text_output.h"
#include "cli/view/gpus_view.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kGpusUsage =
    "rfinject gpus [NAME...]\n\n"
    "The GPUs whose roofs are known: dense datasheet peaks in TFLOP/s, memory bandwidth in GB/s, and where each row "
    "comes\n"
    "from. The names are those that --estimate takes; AMD's GPUs (MI…) are there for recordings that are imported.";

}  // namespace

std::string UnknownGpu(std::string_view name) {
  const Gpu* nearest[3];
  std::string names;
  for (const Gpu* gpu : NearestGpus(name, nearest)) names += (names.empty() ? "" : ", ") + std::string(gpu->name);
  return std::string(name) + ": no such GPU in the table" + (names.empty() ? "" : "; nearest: " + names) +
         " (rfinject gpus lists all)";
}

VerbHelp GpusHelp() {
  return {
      kGpusUsage, {FormatOption(/*pictures=*/false), kOutputOption, kForceOption, kRawOption, kWidthOption}, kGpus};
}

int GpusMain(const ParsedOptions& parsed) {
  OptionReader reader(parsed);
  const Format* const format = reader.FormatOption(/*pictures=*/false);
  WriteOptions writing = reader.Writing(format);
  writing.most_rows = 0;
  writing.wide = !parsed.Has(kWidthOption.name);
  std::vector<const Gpu*> gpus;
  for (const std::string& name : parsed.words) {
    gpus.push_back(FindBoard(name));
    if (gpus.back() == nullptr) reader.Refuse(UnknownGpu(name));
  }
  if (!reader.ok()) return Refused("gpus", reader.status());
  if (gpus.empty()) {
    for (const Gpu& gpu : AllGpus()) gpus.push_back(&gpu);
  }
  TextOutput destination;
  if (!Succeeded(destination.Open(parsed.Value("output"), ReplaceOf(parsed, {})))) return 1;
  const absl::Status written = destination.Write(GpuDocument(std::move(gpus)), *format, writing);
  return written.ok() ? 0 : Refused("gpus", written);
}

}  // namespace rfinject::cli
