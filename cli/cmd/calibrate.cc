// `rfinject calibrate`: times operators on the user's own GPU, by the user's own PyTorch, and writes the parameters
// that its expected times are then made with.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/cmd/commands.h"
#include "cli/cmd/options.h"
#include "cli/cmd/output_file.h"
#include "cli/cmd/streams.h"
#include "cli/cmd/subprocess.h"
#include "cli/cmd/user_calibration.h"
#include "cli/model/match_gpu.h"
#include "cli/model/probes.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kCalibrateUsage =
    "rfinject calibrate [--python PYTHON] [-o FILE]\n\n"
    "Times products, convolutions, element-wise operators and norms on this machine's GPU with PyTorch, in under a\n"
    "minute, and writes what the GPU reaches to ~/.config/rfinject/calibration.csv. From then on the expected times\n"
    "of --estimate for this kind of GPU are made with it, and reports say so. Other GPUs in the file stay.\n"
    "CUDA_VISIBLE_DEVICES chooses among several. Nothing else should use the GPU meanwhile.";

// It becomes the first argument of the user's Python after -c.
constexpr const char* kProgram =
#include "cli/cmd/calibrate.inc"
    ;

// Long enough for torch on a cold network file system; the GPU's part takes under a minute.
constexpr int kTimeoutS = 300;
// Beyond this share of a time the samples lie too far apart for an undisturbed GPU.
constexpr double kSteady = 0.05;
constexpr std::string_view kMadeBy = "# Made by rfinject calibrate";
constexpr std::string_view kHead =
    "; rfinject calibrate writes it anew for the GPU that it measures.\n"
    "gpu,family,parameter,value,unit,rows,provenance\n";

// What the Python program has reported.
struct Times {
  std::string device, torch, clocks;
  uint64_t memory_bytes = 0;
  bool is_virtual = false;
  std::vector<double> seconds, spreads;  // by probe
};

std::optional<double> NumberOf(std::string_view text) {
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

// The program is ours, but the torch that it runs in is not: what it prints is checked like any other input.
absl::StatusOr<Times> ReadTimes(const std::string& output, size_t probes) {
  Times times;
  times.seconds.resize(probes);
  times.spreads.resize(probes);
  bool whole = false;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(output, '\n'))) {
    const std::vector<std::string> words = absl::StrSplit(line, '\t');
    const std::string second = words.size() > 1 ? words[1] : "";
    if (words[0] == "error") return absl::FailedPreconditionError(second);
    if (words[0] == "device") times.device = second;
    if (words[0] == "torch") times.torch = second;
    if (words[0] == "clocks") times.clocks = second;
    if (words[0] == "virtual") times.is_virtual = true;
    if (words[0] == "end") whole = true;
    if (words[0] == "memory") ParseNumber(second, &times.memory_bytes);
    if (words[0] != "time" || words.size() != 4) continue;
    uint64_t probe = 0;
    const std::optional<double> seconds = NumberOf(words[2]), spread = NumberOf(words[3]);
    if (!ParseNumber(second, &probe) || probe >= probes || !seconds || !(*seconds > 0) || !spread) {
      return absl::DataLossError(absl::StrCat("torch's events gave no time: '", line, "'"));
    }
    times.seconds[probe] = *seconds;
    times.spreads[probe] = *spread;
  }
  if (!whole || std::find(times.seconds.begin(), times.seconds.end(), 0.0) != times.seconds.end()) {
    return absl::DataLossError("the program that times operators ended early");
  }
  return times;
}

absl::StatusOr<Times> Measure(const std::string& python, const std::vector<Probe>& probes) {
  std::vector<std::string> words = {python, "-c", kProgram};
  for (const Probe& probe : probes) words.push_back(probe.words);
  const SubprocessResult result = RunSubprocess(words, {}, kTimeoutS);
  if (result.timed_out) {
    return absl::DeadlineExceededError(absl::StrCat(python, " did not end within ", kTimeoutS / 60, " minutes"));
  }
  if (result.code == 127 && result.output.empty()) {
    return absl::NotFoundError(python + " does not run; --python names the interpreter that trains");
  }
  absl::StatusOr<Times> times = ReadTimes(result.output, probes.size());
  if (!times.ok() && result.code != 0) {
    return absl::UnknownError(
        absl::StrCat(python, " failed with exit code ", result.code, ": ", LastLine(result.errors)));
  }
  return times;
}

// Looks, in seconds, whether there is a GPU that can be calibrated. Returns which it is, or why there is none.
absl::StatusOr<const Gpu*> GpuToTime(const std::string& python, bool may_be_virtual) {
  const absl::StatusOr<Times> found = Measure(python, {});
  if (!found.ok()) return found.status();
  const Gpu* const gpu = MatchGpu(found->device, found->memory_bytes);
  if (gpu == nullptr) {
    return absl::NotFoundError(
        found->device +
        ": its roofs are in no table (rfinject gpus lists those that are), so there is nothing to calibrate");
  }
  if (found->is_virtual && !may_be_virtual) {
    return absl::FailedPreconditionError(
        "this is a virtual GPU, whose times are those of the data sheet; -o FILE writes them all the same");
  }
  return gpu;
}

// Makes a field of the file of a text: no comma, no quote, no control character.
std::string CsvField(std::string text) {
  for (char& c : text) {
    if (c == ',' || c == '"' || static_cast<unsigned char>(c) < ' ') c = ';';
  }
  return text;
}

std::string ProvenanceOf(const Times& times, const Gpu& gpu) {
  const std::string day = absl::FormatTime("%Y-%m-%d", absl::Now(), absl::UTCTimeZone());
  std::string text = "rfinject calibrate; " + day + "; ";
  // Nobody who reads a report must take this for a measurement.
  if (times.is_virtual) text += "a VIRTUAL GPU with the clock of the data sheet; nothing was measured; ";
  text += (times.device == gpu.name ? "" : times.device + "; ") + "torch " + times.torch;
  text += times.clocks.empty() ? "; clocks unknown" : "; " + times.clocks;
  return CsvField(text.substr(0, 300));
}

// The lines of `text` that hold other GPUs' values, as they are.
std::string OthersLines(const std::string& text, const Gpu& gpu) {
  std::string kept;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n', absl::SkipEmpty()))) {
    const std::string name = line.substr(0, line.find(','));
    if (line[0] != '#' && name != "gpu" && FindGpu(name) != &gpu) kept += line + "\n";
  }
  return kept;
}

std::string OwnLines(const Gpu& gpu, const std::vector<FittedParameter>& fitted, const std::string& provenance) {
  std::string text;
  for (const FittedParameter& one : fitted) {
    const std::string_view unit = one.parameter == "burst_ms" ? "ms" : one.parameter == "rows" ? "rows" : "1";
    absl::StrAppendFormat(&text, "%s,%s,%s,%.5g,%s,%d,%s\n", gpu.name, one.family, one.parameter, one.value, unit,
                          one.times, provenance);
  }
  return text;
}

void PrintTimes(const Gpu& gpu, const std::vector<Probe>& probes, const std::vector<double>& seconds,
                const Calibration& before, const Calibration& after) {
  constexpr double kMsPerS = 1e3;
  const ExpectedTimes model_before(gpu, before), model_after(gpu, after);
  Print(absl::StrFormat("%-44s %9s %9s %9s\n", "operator; times in ms", "measured", "expected", "now"));
  for (size_t i = 0; i < probes.size(); ++i) {
    Print(absl::StrFormat("%-44s %9.3f %9.3f %9.3f\n", probes[i].title, seconds[i] * kMsPerS,
                          model_before.Of(probes[i].op).expected_s * kMsPerS,
                          model_after.Of(probes[i].op).expected_s * kMsPerS));
  }
}

// Makes the folders above `path`, for the user alone.
absl::Status MakeFolders(const std::string& path) {
  for (size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
    const std::string folder = path.substr(0, at);
    struct stat status;
    if (::mkdir(folder.c_str(), 0700) != 0 && ::stat(folder.c_str(), &status) != 0) {
      return absl::UnknownError(absl::StrCat(folder, ": cannot be made: ", std::strerror(errno)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

VerbHelp CalibrateHelp() {
  return {
      kCalibrateUsage,
      {{"python", 0, "PYTHON", "the interpreter whose torch is used; default python3", kPrograms},
       {"output", 'o', "FILE", "write there; --calibration FILE then names it to other verbs. Created 0600", kFiles},
       kForceOption}};
}

int CalibrateMain(const ParsedOptions& parsed) {
  if (!parsed.words.empty()) {
    return UsageError("calibrate", "'" + parsed.words[0] + "' is not an option");
  }
  const bool named = parsed.Has("output");
  const std::string path = named ? parsed.Value("output") : UserCalibrationPath();
  if (path.empty()) {
    return UsageError("calibrate", named
                                       ? "-o wants a file"
                                       : "there is no ~/.config here, or RFINJECT_CONFIG is set: -o FILE says where");
  }
  // The file that exists already is read first, so that a minute's work is not thrown away.
  std::string others, error;
  const absl::StatusOr<std::string> old = ReadCalibration(path, named ? WhoseFile::kAnybodys : WhoseFile::kOwn);
  const bool ours = old.ok() && std::string_view(*old).starts_with(kMadeBy);
  if (ours && !Calibration().AddOwn(*old, error)) {
    Complain(absl::StrCat(path, ": ", error, "; mend the line or remove the file"));
    return 1;
  }
  if (!named) {
    if (const absl::Status made = MakeFolders(path); !Succeeded(made)) return 1;
  }
  Replace replace = ReplaceOf(parsed, {});
  replace.any = replace.any || ours;  // other GPUs' lines stay
  OutputFile file;
  if (!Succeeded(file.Open(path, replace))) return 1;

  std::vector<Probe> probes = CalibrationProbes();
  const std::string python = parsed.Value("python", "python3");
  const absl::StatusOr<const Gpu*> found = GpuToTime(python, /*may_be_virtual=*/named);
  if (!Succeeded(found.status())) return 1;
  const Gpu* const gpu = *found;
  Complain(absl::StrCat("timing ", probes.size(), " operators on ", std::string(gpu->name), " with ", python,
                        ", which takes up to a minute"));
  absl::StatusOr<Times> measured = Measure(python, probes);
  if (!Succeeded(measured.status())) return 1;
  Times& times = *measured;
  for (size_t i = probes.size(); i-- > 0;) {
    if (HasUnitFor(*gpu, probes[i])) continue;
    const auto at = static_cast<std::ptrdiff_t>(i);
    probes.erase(probes.begin() + at);
    times.seconds.erase(times.seconds.begin() + at);
    times.spreads.erase(times.spreads.begin() + at);
  }

  const std::vector<FittedParameter> fitted = FitToProbes(*gpu, Calibration::Shipped(), probes, times.seconds);
  const std::string own = OwnLines(*gpu, fitted, ProvenanceOf(times, *gpu));
  Calibration after = Calibration::Shipped();
  if (!after.AddOwn(own, error)) {
    // A file that we write must be one that we read; a time that is refused here is one that no GPU of this kind can
    // have.
    Complain(std::string(gpu->name) + ": the times fit no such GPU: " + error +
             "; was something else running on it?");
    return 1;
  }
  PrintTimes(*gpu, probes, times.seconds, Calibration::Shipped(), after);
  const auto unsteady = std::max_element(times.spreads.begin(), times.spreads.end());
  if (*unsteady > kSteady) {
    Complain(absl::StrFormat("the times of %s vary by %.0f %%: something else may run on the GPU, or it is too hot",
                             probes[static_cast<size_t>(unsteady - times.spreads.begin())].title, *unsteady * 100));
  }
  if (ours) others = OthersLines(*old, *gpu);
  const std::string text = absl::StrCat(std::string(kMadeBy), std::string(kHead), others, own);
  if (!Succeeded(file.Commit(file.Write(text.data(), text.size())))) return 1;
  Complain(absl::StrCat(path, ": what ", std::string(gpu->name), " reaches",
                        named ? "; report --calibration " + path + " uses it" : "; reports use it from now on"));
  return 0;
}

}  // namespace rfinject::cli
