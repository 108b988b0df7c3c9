#include "gpus/calibration_table.h"

namespace rfinject {

std::string_view CalibrationCsv() noexcept {
  static constexpr std::string_view kCsv =
#include "gpus/calibration.csv.inc"
      ;
  return kCsv;
}

}  // namespace rfinject
