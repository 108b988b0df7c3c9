// Writes pprof's profile: what launches cost, by a stack that leads from the model over phase, layers, operator and
// the program's own native frames to the kernel. Values are sums over all measured steps, of all runs that were
// added.
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cli/export/export.h"
#include "cli/export/pprof.pb.h"
#include "cli/report/facts/run_name.h"
#include "cli/report/rows/column.h"
#include "cli/report/rows/stacks.h"
#include "cli/text/code_points.h"

namespace rfinject::cli {
namespace {

// Columns of a report's rows that are values of a sample, and the unit by which pprof knows them.
struct Value {
  std::string_view column, unit;
};
constexpr Value kValues[] = {{"time_ns", "nanoseconds"},
                             {"flop", "count"},
                             {"dram_bytes", "bytes"},
                             {"slack_ns", "nanoseconds"},
                             {"launches", "count"}};

// What made the profile.
constexpr char kComment[] = "rfinject export --to pprof";

int64_t Rounded(double value) {
  constexpr double kMost = 9e18;
  return std::isfinite(value) ? std::llround(std::clamp(value, -kMost, kMost)) : 0;
}

absl::Status Gzip(const std::string& text, std::string* compressed) {
  z_stream stream{};
  constexpr int kGzip = 16 + MAX_WBITS;
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    return absl::ResourceExhaustedError("out of memory");
  }
  std::string comment = kComment;
  gz_header header{};
  header.os = 255;  // not said: the same profile gives the same bytes
  header.comment = reinterpret_cast<Bytef*>(comment.data());
  deflateSetHeader(&stream, &header);
  std::string buffer(1 << 16, '\0');
  int state = Z_OK;
  size_t taken = 0;
  while (state != Z_STREAM_END) {
    if (stream.avail_in == 0 && taken < text.size()) {
      const size_t size = std::min<size_t>(text.size() - taken, 1 << 30);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data() + taken));
      stream.avail_in = static_cast<uInt>(size);
      taken += size;
    }
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    state = deflate(&stream, taken == text.size() ? Z_FINISH : Z_NO_FLUSH);
    if (state == Z_STREAM_ERROR) break;
    compressed->append(buffer.data(), buffer.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  return state == Z_STREAM_END ? absl::OkStatus() : absl::InternalError("the profile cannot be compressed");
}

// The launches of a row by kernel, among those of its run.
using RowName = std::tuple<std::string, std::string, Phase, std::string, std::string, std::string, std::string>;

class PprofExporter : public Exporter {
 public:
  explicit PprofExporter(WriteBytes write) : write_(std::move(write)) {
    Text("");
    for (const Value& value : kValues) {
      auto* type = profile_.add_sample_type();
      type->set_type(Text(value.column));
      type->set_unit(Text(value.unit));
    }
    profile_.set_default_sample_type(Text(kValues[0].column));
    profile_.add_comment(Text(kComment));
  }

  absl::Status Add(const ExportedRun& run) override {
    const Report& report = run.kernels;
    const std::map<RowName, std::shared_ptr<const NativeStackInfo>> stacks = StacksOf(run.run);
    const RowSet columns = RowsOf(report, report.rows);
    std::vector<const Column*> values;
    for (const Value& value : kValues) values.push_back(columns.Find(value.column));
    const std::string model = ModelName(report.run, report.process.list);
    const std::string rank = std::to_string(ProcessOf(run).rank);
    for (size_t i = 0; i < report.rows.size(); ++i) {
      const Row& row = report.rows[i];
      std::vector<uint64_t> stack = {Frame(model, "model"),
                                     Frame(row.phase ? PhaseName(row.phase) : "no phase", "phase")};
      if (row.model.empty()) {
        stack.push_back(Frame("in no layer", "layer"));
      } else {
        // The frames go from the root's class down. Each has its whole path, since two layers may have one name in
        // different places.
        stack.push_back(Frame(row.model, "layer"));
        for (size_t dot = row.layer.find('.'); !row.layer.empty(); dot = row.layer.find('.', dot + 1)) {
          stack.push_back(Frame(row.layer.substr(0, dot), "layer"));
          if (dot == std::string::npos) break;
        }
      }
      const auto native = stacks.find(NameOf(row));
      if (native != stacks.end()) {
        for (auto frame = native->second->rbegin(); frame != native->second->rend(); ++frame) {
          stack.push_back(Frame(FrameText(*frame), frame->module));
        }
      }
      if (!row.op.empty()) stack.push_back(Frame(row.op, "operator"));
      if (!row.kernel.empty()) stack.push_back(Frame(row.kernel, "kernel"));
      auto* sample = profile_.add_sample();
      for (auto frame = stack.rbegin(); frame != stack.rend(); ++frame) sample->add_location_id(*frame);
      for (const Column* value : values) sample->add_value(Rounded(NumberIn(value->value(i))));
      AddLabel("device", report.device.name, sample);
      AddLabel("source", SourceName(report.run.source), sample);
      // As a text: the number 0 is no label to pprof.
      if (run.run.processes == 1) AddLabel("rank", rank, sample);
    }
    return absl::OkStatus();
  }

  absl::Status Finish() override {
    std::string compressed;
    const absl::Status status = Gzip(profile_.SerializeAsString(), &compressed);
    if (status.ok()) write_(compressed);
    return status;
  }

 private:
  static RowName NameOf(const Row& row) {
    return {row.model, row.layer, row.phase.value_or(Phase::kOther), row.op, row.kernel, row.signature, row.caller};
  }

  // The stacks that were taken, by row. Where launches of one row have several, the smallest, as merging keeps it.
  static std::map<RowName, std::shared_ptr<const NativeStackInfo>> StacksOf(const Run& run) {
    std::map<RowName, std::shared_ptr<const NativeStackInfo>> stacks;
    for (const auto& [key, stats] : run.launches) {
      if (!stats.stack) continue;
      auto& kept = stacks[{key.layer.model, key.layer.path, key.phase, key.op, key.kernel, key.signature,
                           key.layer.model.empty() ? CallerOf(*stats.stack) : std::string()}];
      if (!kept || *stats.stack < *kept) kept = stats.stack;
    }
    return stacks;
  }

  int64_t Text(std::string_view text) {
    const auto [known, is_new] = texts_.try_emplace(std::string(text), static_cast<int64_t>(texts_.size()));
    if (is_new) profile_.add_string_table(text.empty() ? std::string() : PrintableText(text));
    return known->second;
  }

  void AddLabel(std::string_view key, std::string_view text, pprof::Sample* sample) {
    auto* label = sample->add_label();
    label->set_key(Text(key));
    label->set_str(Text(text));
  }

  // The location of a function of this name in `file`: what a frame is of, or the native library it is in.
  uint64_t Frame(std::string_view name, std::string_view file) {
    const auto [known, is_new] =
        frames_.try_emplace(std::pair(std::string(name), std::string(file)), frames_.size() + 1);
    if (is_new) {
      auto* function = profile_.add_function();
      function->set_id(known->second);
      function->set_name(Text(name));
      function->set_filename(Text(file));
      auto* location = profile_.add_location();
      location->set_id(known->second);
      location->add_line()->set_function_id(known->second);
    }
    return known->second;
  }

  const WriteBytes write_;
  pprof::Profile profile_;
  absl::flat_hash_map<std::string, int64_t> texts_;
  absl::flat_hash_map<std::pair<std::string, std::string>, uint64_t> frames_;
};

}  // namespace

std::unique_ptr<Exporter> MakePprofExporter(WriteBytes write) {
  return std::make_unique<PprofExporter>(std::move(write));
}

}  // namespace rfinject::cli
