// File: calibration.h
//
// The parameters of the model of expected.h, by GPU and family of operators: those of gpus/calibration.csv and,
// overriding them, those that `rfinject calibrate` measured on a user's own GPUs.
//
//   const Calibration& calibration = Calibration::Shipped();
//   calibration.Get(*FindGpu("T4"), "conv_fp32", "winograd")   // the T4's own value, or its chip's, or that of "*"
#ifndef RFINJECT_CLI_MODEL_CALIBRATION_H_
#define RFINJECT_CLI_MODEL_CALIBRATION_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "gpus/gpus.h"

namespace rfinject::cli {

// What the shares and rates of a user's own file may be; they are about 1.
inline constexpr double kLeastShare = 0.01, kMostShare = 4;

class Calibration {
 public:
  // The table that the command was built with.
  static const Calibration& Shipped();

  // Reads lines "gpu,family,parameter,value,…" and skips the header, empty lines and lines that begin with '#'.
  // Returns nothing where a line has fewer fields or a value that is no finite number; `error` then names the line.
  static std::optional<Calibration> Parse(std::string_view csv, std::string& error);

  // Adds a user's own file, whose values override what is there. Such a file is not trusted: each line must be of a
  // GPU of gpus.csv and of a parameter that `rfinject calibrate` writes, within its bounds. Where one is not, returns
  // false and changes nothing; `error` then says which line and why.
  bool AddOwn(std::string_view csv, std::string& error);

  // Where the GPU's values of a user's own file come from, as the file has it (column provenance); empty: there are
  // none.
  std::string_view OwnSource(std::string_view gpu) const;

  // The GPU's own value, else that of its chip, which all boards of the chip share, else that of the GPU "*", which
  // stands for a GPU without measurements; nothing if there is none.
  std::optional<double> Get(const Gpu& gpu, std::string_view family, std::string_view parameter) const;

  // The GPU's own value, else that of its chip.
  std::optional<double> OfBoardOrChip(const Gpu& gpu, std::string_view family, std::string_view parameter) const;

  // The value of that name only: a GPU's, a chip's, or that of "*".
  std::optional<double> Own(std::string_view gpu, std::string_view family, std::string_view parameter) const;

  void Set(std::string_view gpu, std::string_view family, std::string_view parameter, double value);

 private:
  template <typename Value>
  using ByName = std::map<std::string, Value, std::less<>>;
  ByName<ByName<ByName<double>>> values_;  // by GPU, family and parameter
  ByName<std::string> own_sources_;        // by GPU
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_MODEL_CALIBRATION_H_
