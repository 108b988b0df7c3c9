// estimate_rows [--calibration FILE] [-o OUT.csv] ROWS.csv
// estimate_rows [--calibration FILE] --serve ROWS.csv [MORE.csv]
// estimate_rows [--calibration FILE] --kernels GPU KERNELS.tsv
//
// ROWS.csv has the columns of calibration/data/operator_times.csv; OUT.csv (standard output) has the same lines with
// ideal_ms, expected_ms, low_ms, high_ms, launch_ms (of the expected time, beside the kernel's work), family, scale
// (the parameter of its ScaleKind) and group appended, empty where the GPU or the operator is not known. expected_ms
// is what the row's source would have measured: where that timed single calls between events, its parameter event_us
// (the host's time to launch into an idle GPU) is added.
//
// calibration/data/recorded_kernels.csv has other columns, which calibration/from_recordings says; it is read as
// well.
//
// --serve answers calibration/fit, a line for a line: "set GPU FAMILY PARAMETER VALUE", "select NAME INDEX…" (rows
// from 0), "loss NAME" (mean of |expected - measured| / measured), "predict NAME" (expected_ms of each row).
//
// KERNELS.tsv has lines "operator TAB signature TAB bytes TAB FLOP by precision, separated by spaces", as
// estimate_replay --list prints them; printed is for each "operator TAB ideal_ms TAB expected_ms TAB low_ms TAB
// high_ms TAB group".
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "cli/model/calibration.h"
#include "cli/model/estimated_kernel.h"
#include "cli/model/expected.h"
#include "gpus/gpus.h"

namespace {

using rfinject::Precision;
using rfinject::cli::Calibration;
using rfinject::cli::ExpectedTime;
using rfinject::cli::ExpectedTimes;
using rfinject::cli::FamilyOf;
using rfinject::cli::Operator;
using rfinject::cli::OperatorKind;
using rfinject::cli::Pass;

// The fields of a line; a quoted one may hold commas.
std::vector<std::string> Fields(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  return fields;
}

struct Row {
  std::string line;
  const rfinject::Gpu* gpu = nullptr;
  std::vector<Operator> ops;  // empty: not known; two: a convolution's backward
  std::string events;         // the family of event_us; empty: the source gives the kernel's own time
  double measured_ms = 0;
};

class Columns {
 public:
  explicit Columns(const std::string& header) {
    const auto names = Fields(header);
    for (size_t i = 0; i < names.size(); ++i) index_[names[i]] = i;
  }
  std::string Text(const std::vector<std::string>& fields, const std::string& name) const {
    const auto found = index_.find(name);
    return found == index_.end() || found->second >= fields.size() ? "" : fields[found->second];
  }
  double Number(const std::vector<std::string>& fields, const std::string& name, double missing = 0) const {
    const std::string text = Text(fields, name);
    double value = missing;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() && std::isfinite(value) ? value : missing;
  }

 private:
  std::map<std::string, size_t> index_;
};

// Operands that an element-wise operator reads and writes; 0: it is none.
double Operands(const std::string& op) {
  for (const char* name : {"add", "sub", "mul", "div", "pow"}) {
    if (op == name) return 3;
    if (op == std::string(name) + "u") return 2;  // the other operand is a scalar
  }
  for (const char* name : {"relu", "gelu", "tanh", "sigmoid", "silu", "exp", "copy"}) {
    if (op == name) return 2;
  }
  return 0;
}

// The unit that a product of the type runs on, as operators/precision.h has it; nothing for unknown types.
std::optional<Precision> UnitFor(const std::string& dtype, const rfinject::Gpu& gpu) {
  const auto or_fp32 = [&](Precision unit) {
    return gpu.peak[static_cast<size_t>(unit)] > 0 ? unit : Precision::kFp32;
  };
  if (dtype == "fp32") return Precision::kFp32;
  if (dtype == "tf32") return or_fp32(Precision::kTf32Tensor);
  if (dtype == "fp16") return or_fp32(Precision::kFp16Tensor);
  if (dtype == "bf16") return or_fp32(Precision::kBf16Tensor);
  return std::nullopt;
}

std::optional<Operator> OperatorOf(const Columns& columns, const std::vector<std::string>& fields,
                                   const rfinject::Gpu& gpu) {
  const auto number = [&](const char* name, double missing = 0) { return columns.Number(fields, name, missing); };
  const std::string name = columns.Text(fields, "op"), dtype = columns.Text(fields, "dtype"),
                    pass = columns.Text(fields, "pass");
  const auto unit = UnitFor(dtype, gpu);
  if (!unit) return std::nullopt;
  Operator op;
  op.precision = *unit;
  op.element_bytes = dtype == "fp16" || dtype == "bf16" ? 2 : 4;
  if (name == "conv" && pass == "dgrad") {
    op.pass = Pass::kDgrad;
  } else if (name == "conv" && pass == "wgrad") {
    op.pass = Pass::kWgrad;
  } else if (pass != "forward" && !pass.empty() && !(name == "batch_norm" && pass == "backward")) {
    return std::nullopt;
  }
  if (name == "linear" || name == "bmm") {
    op.kind = OperatorKind::kProduct;
    op.shared_right = name == "linear";
    op.batch = number("b", 1), op.m = number("m"), op.k = number("k"), op.n = number("n");
    if (!(op.batch > 0 && op.m > 0 && op.k > 0 && op.n > 0)) return std::nullopt;
    return op;
  }
  if (name == "batch_norm") {  // in training, channels first
    const double elements = number("b", 1) * number("c_in") * number("h") * number("w");
    if (!(elements > 0)) return std::nullopt;
    op.kind = OperatorKind::kBatchNorm;
    op.rows = dtype == "fp32" ? number("c_in") : 0;
    const double operand = elements * op.element_bytes;
    op.bytes = (pass == "backward" ? 3 : 2) * operand, op.reread_bytes = (pass == "backward" ? 2 : 1) * operand;
    return op;
  }
  if (name == "conv") {
    op.channels_last = op.element_bytes == 2;  // as DeepBench times halves, and all else channels first
    op.kind = OperatorKind::kConvolution;
    op.images = number("b", 1), op.c_in = number("c_in"), op.c_out = number("c_out");
    op.kernel_h = number("kh"), op.kernel_w = number("kw"), op.h = number("h"), op.w = number("w");
    op.out_h = std::floor((op.h + 2 * number("ph") - op.kernel_h) / number("sh", 1)) + 1;
    op.out_w = std::floor((op.w + 2 * number("pw") - op.kernel_w) / number("sw", 1)) + 1;
    const bool whole = op.images > 0 && op.c_in > 0 && op.c_out > 0 && op.kernel_h > 0 && op.kernel_w > 0 &&
                       op.out_h >= 1 && op.out_w >= 1;
    return whole ? std::optional(op) : std::nullopt;
  }
  double operands = Operands(name);
  if (operands == 0) {
    operands = 2;
    if (name == "softmax") {
      op.kind = OperatorKind::kSoftmax;
    } else if (name == "layer_norm") {
      op.kind = OperatorKind::kLayerNorm;
    } else if (name == "rms_norm") {
      op.kind = OperatorKind::kRmsNorm;
    } else {
      return std::nullopt;
    }
  }
  op.rows = number("rows"), op.cols = number("cols");
  op.bytes = operands * op.rows * op.cols * op.element_bytes;
  return op.bytes > 0 ? std::optional(op) : std::nullopt;
}

// By Precision. Rows of recordings end before INT8, which none of them has.
bool ReadFlop(const std::string& text, rfinject::cli::FlopByPrecision* flop) {
  std::istringstream amounts(text);
  size_t count = 0;
  while (count < flop->size() && amounts >> (*flop)[count]) ++count;
  return count >= static_cast<size_t>(rfinject::Precision::kInt8Tensor);
}

// A row of recorded kernels: the operator as a trace has it.
std::vector<Operator> RecordedOf(const Columns& columns, const std::vector<std::string>& fields) {
  const std::string name = columns.Text(fields, "operator"), signature = columns.Text(fields, "signature");
  rfinject::cli::EstimatedKernel kernel{.op = name,
                                        .signature = signature,
                                        .bytes = columns.Number(fields, "bytes"),
                                        .gradient = columns.Text(fields, "phase") == "backward"};
  if (!ReadFlop(columns.Text(fields, "flop"), &kernel.flop)) return {};
  const auto list = rfinject::cli::OperatorsOf(kernel);
  return {list.span().begin(), list.span().end()};
}

// Whether the times are those of the kernels alone, or averages over launches that follow one another. The others
// time single calls.
bool TimesKernels(const std::string& timed_by, const std::string& source) {
  if (!timed_by.empty()) return timed_by != "events";
  constexpr std::array kSources = {"vidur", "DeepBench", "HolisticTraceAnalysis"};
  return std::ranges::any_of(kSources, [&](const char* name) { return source.find(name) != std::string::npos; });
}

ExpectedTime TimeOf(const Row& row, const ExpectedTimes& model) {
  ExpectedTime sum;
  for (const Operator& op : row.ops) {
    const ExpectedTime time = model.Of(op);
    sum.ideal_s += time.ideal_s, sum.expected_s += time.expected_s;
    sum.low_s += time.low_s, sum.high_s += time.high_s, sum.launch_s += time.launch_s;
  }
  return sum;
}

double ExpectedMs(const Row& row, const Calibration& calibration, double seconds) {
  const double event_us = row.events.empty() ? 0 : calibration.Get(*row.gpu, row.events, "event_us").value_or(0);
  return seconds * 1e3 + event_us * 1e-3;
}

struct Rows {
  std::string header;
  std::vector<Row> rows;
};

void ReadRows(std::istream& in, Rows& result) {
  std::getline(in, result.header);
  if (result.header.ends_with('\r')) result.header.pop_back();
  const Columns columns(result.header);
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) continue;
    Row row;
    row.line = line;
    const auto fields = Fields(line);
    row.gpu = rfinject::FindGpu(columns.Text(fields, "gpu"));
    row.measured_ms = columns.Number(fields, "measured_ms");
    if (row.gpu != nullptr && !columns.Text(fields, "signature").empty()) {
      row.ops = RecordedOf(columns, fields);
    } else if (row.gpu != nullptr) {
      if (const auto op = OperatorOf(columns, fields, *row.gpu)) row.ops = {*op};
    }
    if (!row.ops.empty() && !TimesKernels(columns.Text(fields, "timed_by"), columns.Text(fields, "source"))) {
      row.events = rfinject::cli::kFamilyNames[static_cast<size_t>(FamilyOf(row.ops[0]))];
    }
    result.rows.push_back(std::move(row));
  }
}

void Print(const Rows& rows, const Calibration& calibration, std::FILE* out) {
  std::fprintf(out, "%s,ideal_ms,expected_ms,low_ms,high_ms,launch_ms,family,scale,group\n", rows.header.c_str());
  std::map<const rfinject::Gpu*, ExpectedTimes> models;
  for (const Row& row : rows.rows) {
    if (row.ops.empty()) {
      std::fprintf(out, "%s,,,,,,,,\n", row.line.c_str());
      continue;
    }
    const ExpectedTime time = TimeOf(row, models.try_emplace(row.gpu, *row.gpu, calibration).first->second);
    if (!(time.expected_s > 0)) {
      std::fprintf(out, "%s,,,,,,,,\n", row.line.c_str());
      continue;
    }
    const auto family = FamilyOf(row.ops[0]);
    const double expected = ExpectedMs(row, calibration, time.expected_s);
    std::fprintf(out, "%s,%.6g,%.6g,%.6g,%.6g,%.6g,%s,%s,%d\n", row.line.c_str(), time.ideal_s * 1e3, expected,
                 expected * time.low_s / time.expected_s, expected * time.high_s / time.expected_s,
                 time.launch_s * 1e3, std::string(rfinject::cli::kFamilyNames[static_cast<size_t>(family)]).c_str(),
                 std::string(rfinject::cli::kScaleNames[static_cast<size_t>(ScaleKindOf(row.ops[0]))]).c_str(),
                 static_cast<int>(rfinject::cli::ErrorGroupOf(family)));
  }
}

void Serve(const Rows& rows, Calibration calibration) {
  std::map<std::string, std::vector<size_t>> selections;
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string command, name;
    words >> command;
    if (command == "set") {
      std::string gpu, family, parameter;
      double value = 0;
      words >> gpu >> family >> parameter >> value;
      calibration.Set(gpu, family, parameter, value);
      continue;  // no answer, so that many can be sent at once
    }
    words >> name;
    auto& selected = selections[name];
    if (command == "select") {
      selected.clear();
      for (size_t index; words >> index;) {
        if (index < rows.rows.size() && !rows.rows[index].ops.empty()) selected.push_back(index);
      }
      std::printf("%zu\n", selected.size());
    } else if (command == "families") {  // of the rows; a convolution's backward bears its weight's
      for (const size_t index : selected) {
        std::printf(
            "%zu:%s ", index,
            std::string(rfinject::cli::kFamilyNames[static_cast<size_t>(FamilyOf(rows.rows[index].ops[0]))]).c_str());
      }
      std::printf("\n");
    } else if (command == "loss" || command == "predict") {
      double sum = 0;
      std::map<const rfinject::Gpu*, ExpectedTimes> models;
      for (const size_t index : selected) {
        const Row& row = rows.rows[index];
        const ExpectedTimes& model = models.try_emplace(row.gpu, *row.gpu, calibration).first->second;
        const double expected = ExpectedMs(row, calibration, TimeOf(row, model).expected_s);
        sum += std::abs(expected - row.measured_ms) / row.measured_ms;
        if (command == "predict") std::printf("%.6g ", expected);
      }
      if (command == "loss") std::printf("%.9g", selected.empty() ? 0 : sum / static_cast<double>(selected.size()));
      std::printf("\n");
    } else {
      std::printf("error\n");
    }
    std::fflush(stdout);
  }
}

// Returns false on a line that is not of the form.
bool PrintKernels(std::istream& in, const rfinject::Gpu& gpu, const Calibration& calibration) {
  const ExpectedTimes model(gpu, calibration);
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string op, signature, bytes, flop;
    std::getline(fields, op, '\t');
    std::getline(fields, signature, '\t');
    std::getline(fields, bytes, '\t');
    std::getline(fields, flop, '\t');
    rfinject::cli::EstimatedKernel kernel{.op = op, .signature = signature};
    if (!ReadFlop(flop, &kernel.flop)) return false;
    if (!(std::istringstream(bytes) >> kernel.bytes)) return false;
    const ExpectedTime time = ExpectedTimeOf(kernel, model);
    std::printf("%s\t%.6g\t%.6g\t%.6g\t%.6g\t%d\n", op.c_str(), time.ideal_s * 1e3, time.expected_s * 1e3,
                time.low_s * 1e3, time.high_s * 1e3, static_cast<int>(time.group));
  }
  return true;
}

int Fail(const std::string& text) {
  std::fprintf(stderr, "estimate_rows: %s\n", text.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  std::string input, more, output, table, gpu_name;
  bool serve = false;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--serve") {
      serve = true;
    } else if ((argument == "-o" || argument == "--calibration" || argument == "--kernels") && i + 1 < argc) {
      (argument == "-o" ? output : argument == "--kernels" ? gpu_name : table) = argv[++i];
    } else if (input.empty()) {
      input = argument;
    } else if (more.empty() && serve) {
      more = argument;
    } else {
      return Fail("usage: estimate_rows [--calibration FILE] [-o OUT.csv | --serve] ROWS.csv");
    }
  }
  std::ifstream file(input);
  if (!file) return Fail("cannot open '" + input + "'");
  Calibration calibration = Calibration::Shipped();
  if (!table.empty()) {
    std::ifstream text(table);
    std::string csv((std::istreambuf_iterator<char>(text)), std::istreambuf_iterator<char>()), error;
    const auto parsed = Calibration::Parse(csv, error);
    if (!text || !parsed) return Fail(table + ": " + (error.empty() ? "cannot be read" : error));
    calibration = *parsed;
  }
  if (!gpu_name.empty()) {
    const rfinject::Gpu* gpu = rfinject::FindGpu(gpu_name);
    if (gpu == nullptr) return Fail("no GPU '" + gpu_name + "' in the table");
    return PrintKernels(file, *gpu, calibration) ? 0
                                                 : Fail("'" + input + "' is not what estimate_replay --list prints");
  }
  Rows rows;
  ReadRows(file, rows);
  if (std::ifstream second(more); second) ReadRows(second, rows);
  if (serve) {
    Serve(rows, calibration);
    return 0;
  }
  std::FILE* out = output.empty() ? stdout : std::fopen(output.c_str(), "w");
  if (out == nullptr) return Fail("cannot write '" + output + "'");
  Print(rows, calibration, out);
  return out == stdout || std::fclose(out) == 0 ? 0 : Fail("cannot write '" + output + "'");
}
