#include "cli/model/calibration.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "cli/model/expected.h"
#include "gpus/calibration_table.h"
#include "gpus/csv.h"
#include "gpus/gpus.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kHeader = "gpu,family,parameter,value";
constexpr std::string_view kAnyGpu = "*";

std::string_view TakeField(std::string_view& line) {
  const size_t end = line.find(',');
  const std::string_view field = line.substr(0, end);
  line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  return field;
}

struct Line {
  std::string_view gpu, family, parameter;
  double value = 0;
  std::string_view rest;  // the fields after it
};

// Calls `use(line)` for each line of a calibration that holds a value. Returns false at the first line that cannot be
// read, or that `use` refuses; `error` says why.
template <typename Use>
bool ForEachLine(std::string_view csv, std::string& error, const Use& use) {
  for (size_t number = 1; !csv.empty(); ++number) {
    std::string_view text = csv::TakeLine(csv);
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (text.empty() || text[0] == '#' || text.starts_with(kHeader)) continue;
    Line line;
    line.gpu = TakeField(text), line.family = TakeField(text), line.parameter = TakeField(text);
    const std::string_view value = TakeField(text);
    line.rest = text;
    const auto [last, failure] = std::from_chars(value.data(), value.data() + value.size(), line.value);
    std::string why;
    if (line.gpu.empty() || line.family.empty() || line.parameter.empty() || failure != std::errc() ||
        last != value.data() + value.size() || !std::isfinite(line.value)) {
      why = "is not gpu,family,parameter,value";
    } else if (!use(line, why)) {
      why = why.empty() ? "cannot be used" : why;
    }
    if (!why.empty()) {
      error = "line " + std::to_string(number) + " of the calibration " + why;
      return false;
    }
  }
  return true;
}

// The bounds of a parameter in a user's own file; nothing where such a file may not set the parameter.
struct Bounds {
  double least, most;
};
std::optional<Bounds> BoundsOf(std::string_view family, std::string_view parameter) {
  constexpr Bounds kShares = {kLeastShare, kMostShare};
  if (family == "gpu") return parameter == "memory_share" ? std::optional(kShares) : std::nullopt;
  if (family == "fp32" || family == "tensor") {
    if (parameter == "burst_ms") return Bounds{0, 1000};
    return parameter == "share" ? std::optional(kShares) : std::nullopt;
  }
  if (std::find(kFamilyNames.begin(), kFamilyNames.end(), family) == kFamilyNames.end()) return std::nullopt;
  if (parameter == "rows") return Bounds{1, 1e9};
  for (const std::string_view one : {"share", "share_persistent", "rate", "winograd", "winograd_fused"}) {
    if (parameter == one) return kShares;
  }
  return std::nullopt;
}

}  // namespace

const Calibration& Calibration::Shipped() {
  // A table that does not parse is caught by calibration_test; here it would be a table without values.
  static const Calibration shipped = [] {
    std::string error;
    return Parse(CalibrationCsv(), error).value_or(Calibration());
  }();
  return shipped;
}

std::optional<Calibration> Calibration::Parse(std::string_view csv, std::string& error) {
  Calibration calibration;
  const bool good = ForEachLine(csv, error, [&](const Line& line, std::string&) {
    calibration.Set(line.gpu, line.family, line.parameter, line.value);
    return true;
  });
  return good ? std::optional(std::move(calibration)) : std::nullopt;
}

bool Calibration::AddOwn(std::string_view csv, std::string& error) {
  constexpr size_t kMostSource = 400;  // bytes
  std::vector<Line> lines;             // what is taken once all of them are good
  const bool good = ForEachLine(csv, error, [&](const Line& line, std::string& why) {
    const Gpu* gpu = FindGpu(line.gpu);
    const std::optional<Bounds> bounds = BoundsOf(line.family, line.parameter);
    if (gpu == nullptr) {
      why = "is of a GPU that is in no table (rfinject gpus lists them)";
    } else if (!bounds) {
      why = "is of a parameter that rfinject calibrate does not measure";
    } else if (line.value < bounds->least || line.value > bounds->most) {
      why = "has a value that no GPU has";
    } else {
      lines.push_back(line);
      lines.back().gpu = gpu->name;
    }
    return why.empty();
  });
  if (!good) return false;
  for (const Line& line : lines) {
    Set(line.gpu, line.family, line.parameter, line.value);
    std::string_view rest = line.rest;
    TakeField(rest), TakeField(rest);  // unit, rows
    if (rest.size() > kMostSource) rest = rest.substr(0, kMostSource);
    own_sources_[std::string(line.gpu)] = rest.empty() ? "an own file" : rest;
  }
  return true;
}

std::string_view Calibration::OwnSource(std::string_view gpu) const {
  const auto found = own_sources_.find(gpu);
  return found == own_sources_.end() ? std::string_view() : found->second;
}

std::optional<double> Calibration::Own(std::string_view gpu, std::string_view family,
                                       std::string_view parameter) const {
  const auto families = values_.find(gpu);
  if (families == values_.end()) return std::nullopt;
  const auto parameters = families->second.find(family);
  if (parameters == families->second.end()) return std::nullopt;
  const auto found = parameters->second.find(parameter);
  if (found == parameters->second.end()) return std::nullopt;
  return found->second;
}

std::optional<double> Calibration::OfBoardOrChip(const Gpu& gpu, std::string_view family,
                                                 std::string_view parameter) const {
  const auto own = Own(gpu.name, family, parameter);
  return own ? own : Own(gpu.chip, family, parameter);
}

std::optional<double> Calibration::Get(const Gpu& gpu, std::string_view family, std::string_view parameter) const {
  const auto near = OfBoardOrChip(gpu, family, parameter);
  return near ? near : Own(kAnyGpu, family, parameter);
}

void Calibration::Set(std::string_view gpu, std::string_view family, std::string_view parameter, double value) {
  values_[std::string(gpu)][std::string(family)][std::string(parameter)] = value;
}

}  // namespace rfinject::cli
