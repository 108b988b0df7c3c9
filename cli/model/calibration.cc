#include "cli/model/calibration.h"

#include <charconv>
#include <cmath>

#include "gpus/calibration_table.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kHeader = "gpu,family,parameter,value";
constexpr std::string_view kAnyGpu = "*";

std::string Key(std::string_view gpu, std::string_view family, std::string_view parameter) {
  std::string key(gpu);
  key.append(",").append(family).append(",").append(parameter);
  return key;
}

std::string_view TakeField(std::string_view& line) {
  const size_t end = line.find(',');
  const std::string_view field = line.substr(0, end);
  line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  return field;
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
  for (size_t number = 1; !csv.empty(); ++number) {
    const size_t end = csv.find('\n');
    std::string_view line = csv.substr(0, end);
    csv.remove_prefix(end == std::string_view::npos ? csv.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line[0] == '#' || line.starts_with(kHeader)) continue;
    const std::string_view gpu = TakeField(line), family = TakeField(line), parameter = TakeField(line),
                           text = TakeField(line);
    double value = 0;
    const auto [last, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (gpu.empty() || family.empty() || parameter.empty() || failure != std::errc() ||
        last != text.data() + text.size() || !std::isfinite(value)) {
      error = "line " + std::to_string(number) + " of the calibration is not gpu,family,parameter,value";
      return std::nullopt;
    }
    calibration.Set(gpu, family, parameter, value);
  }
  return calibration;
}

std::optional<double> Calibration::Own(std::string_view gpu, std::string_view family,
                                       std::string_view parameter) const {
  const auto found = values_.find(Key(gpu, family, parameter));
  if (found == values_.end()) return std::nullopt;
  return found->second;
}

std::optional<double> Calibration::Get(std::string_view gpu, std::string_view family,
                                       std::string_view parameter) const {
  const auto own = Own(gpu, family, parameter);
  return own ? own : Own(kAnyGpu, family, parameter);
}

void Calibration::Set(std::string_view gpu, std::string_view family, std::string_view parameter, double value) {
  values_[Key(gpu, family, parameter)] = value;
}

}  // namespace rfinject::cli
