// File: calibration_table.h
//
// calibration.csv, compiled in: what the GPUs of gpus.csv sustain, fitted to times that others measured. This is the
// text as it is in the file; cli/model/calibration.h reads it.
#ifndef RFINJECT_GPUS_CALIBRATION_TABLE_H_
#define RFINJECT_GPUS_CALIBRATION_TABLE_H_

#include <string_view>

namespace rfinject {

// Returns the whole text, its first line included.
std::string_view CalibrationCsv() noexcept;

}  // namespace rfinject

#endif  // RFINJECT_GPUS_CALIBRATION_TABLE_H_
