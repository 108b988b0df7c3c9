// Perfetto's trace of tracks and slices. What is kept of a run are sums, so a process has one step, the mean one: its
// phases in the order of a training step, in them the layers as the program runs them (backward the other way round),
// then operators, then kernels, each as long as it takes on the GPU and one behind the other. Where the trace says
// single steps, a second track has them by the clock, from the first one of the process on, and where windows of them
// were sampled over time, counters have these.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cli/export/export.h"
#include "cli/export/perfetto.pb.h"
#include "cli/report/rows/column.h"
#include "cli/report/run_list.h"
#include "cli/text/code_points.h"

namespace rfinject::cli {
namespace {

using perfetto::TrackEvent;

// Columns of a report's rows that a slice says, by their names there.
constexpr std::string_view kAnnotations[] = {"launches_per_step",     "time_per_step_ns", "flop_per_step",
                                             "dram_bytes_per_step",   "oi_flop_per_byte", "performance_flop_per_s",
                                             "bandwidth_bytes_per_s", "attainable_share", "bound"};
// Those that are a track of values over the step.
constexpr std::string_view kCounters[] = {"performance_flop_per_s", "bandwidth_bytes_per_s", "attainable_share"};

// What the packets of one file share: a file has one writer.
constexpr uint32_t kSequence = 1;
constexpr uint32_t kCleared = 1;
// Numbers of tracks: those of one process follow one another, in the order in which they are shown.
constexpr uint64_t kTracksOfAProcess = 16;
constexpr uint64_t kMeanStep = 1, kFirstCounter = 2, kSteps = 8, kDramOverTime = 9, kTensorOverTime = 10;
// Times that are smaller are those of a file that does not know the time of day: September 2001.
constexpr int64_t kOldestUnixNs = 1'000'000'000'000'000'000;

constexpr const char* kLevels[] = {"phase", "layer", "op", "kernel"};

// A slice is a row whose sums are those of all that is below it.
struct Slice {
  size_t level = 0;
  std::string name;
  Row row;
  std::vector<size_t> children;  // indices of slices
};

std::string NameOf(size_t level, const Row& row) {
  switch (level) {
    case 0:
      return row.phase ? std::string(PhaseName(row.phase)) : "no phase";
    case 1:
      if (row.model.empty()) return row.caller.empty() ? "in no layer" : "in no layer: " + row.caller;
      return row.layer.empty() ? row.model : row.layer;
    case 2:
      return row.op.empty() ? "no operator" : row.op;
    default:
      return row.kernel.empty() ? (row.op.empty() ? "unnamed" : row.op) : row.kernel;
  }
}

class PerfettoExporter : public Exporter {
 public:
  explicit PerfettoExporter(WriteBytes write) : write_(std::move(write)) {}

  absl::Status Add(const ExportedRun& run) override {
    const uint64_t process = ++processes_ * kTracksOfAProcess;
    DescribeProcess(run, process);
    const std::vector<Slice> slices = SlicesOf(run.kernels);
    std::vector<const Row*> rows;
    for (const Slice& slice : slices) rows.push_back(&slice.row);
    const RowSet columns = RowsOf(run.kernels, rows);
    std::vector<const Column*> annotations;
    for (const std::string_view name : kAnnotations) annotations.push_back(columns.Find(name));
    std::vector<const Column*> counters;
    for (const std::string_view name : kCounters) counters.push_back(columns.Find(name));
    for (size_t i = 0; i < counters.size(); ++i) {
      PutTrack(process, kFirstCounter + i, std::string(counters[i]->info.title), counters[i]->info.unit);
    }
    // Where a slice begins, unrounded: the ends of children and parents fall together.
    double at_ns = 0;
    const double steps = run.kernels.steps.count > 0 ? static_cast<double>(run.kernels.steps.count) : 1;
    const auto put = [&](const auto& self, size_t index) -> void {
      const Slice& slice = slices[index];
      TrackEvent begin = EventOf(TrackEvent::SLICE_BEGIN, process + kMeanStep);
      begin.add_categories(kLevels[slice.level]);
      begin.set_name(PrintableText(slice.name));
      for (const Column* column : annotations) Annotate(*column, index, &begin);
      PutEvent(at_ns, std::move(begin));
      if (slice.children.empty()) {
        for (size_t i = 0; i < counters.size(); ++i)
          PutCounter(process + kFirstCounter + i, at_ns, NumberIn(counters[i]->value(index)));
        at_ns += slice.row.sums.time_ns() / steps;
      }
      for (const size_t child : slice.children) self(self, child);
      PutEvent(at_ns, EventOf(TrackEvent::SLICE_END, process + kMeanStep));
    };
    for (size_t i = 0; i < slices.size(); ++i) {
      if (slices[i].level == 0) put(put, i);
    }
    for (size_t i = 0; i < counters.size(); ++i) PutCounter(process + kFirstCounter + i, at_ns, 0);
    PutSteps(run, process);
    PutWindows(run, process);
    return absl::OkStatus();
  }

  absl::Status Finish() override { return absl::OkStatus(); }

 private:
  // The rows by kernel, as a tree of four levels.
  static std::vector<Slice> SlicesOf(const Report& report) {
    std::map<std::optional<Phase>, size_t> place;  // a step's order
    for (const Row& row : report.phases) place.emplace(row.phase, place.size());
    std::vector<const Row*> rows;
    for (const Row& row : report.rows) {
      if (row.sums.time_ns() > 0) rows.push_back(&row);
    }
    const auto order = [](const Row& row) {
      const auto forward = static_cast<int64_t>(row.order);
      return row.model.empty() ? INT64_MAX : row.phase == Phase::kBackward ? -forward : forward;
    };
    std::stable_sort(rows.begin(), rows.end(), [&](const Row* a, const Row* b) {
      const auto key = [&](const Row& row) {
        return std::tuple(place[row.phase], order(row), std::string_view(row.model), std::string_view(row.layer),
                          std::string_view(row.caller), std::string_view(row.op));
      };
      return key(*a) < key(*b);
    });
    std::vector<Slice> slices;
    std::vector<size_t> open;  // one a level
    const Row* before = nullptr;
    for (const Row* row : rows) {
      size_t level = 0;
      if (before != nullptr && before->phase == row->phase) {
        level = 1;
        if (std::tie(before->model, before->layer, before->caller) == std::tie(row->model, row->layer, row->caller)) {
          level = before->op == row->op ? 3 : 2;
        }
      }
      before = row;
      open.resize(level);
      for (; level < std::size(kLevels); ++level) {
        slices.push_back({level, NameOf(level, *row), {}, {}});
        if (level > 0) slices[open.back()].children.push_back(slices.size() - 1);
        open.push_back(slices.size() - 1);
      }
      for (const size_t index : open) slices[index].row.sums.Add(row->sums);
    }
    for (Slice& slice : slices) slice.row.derived = Derive(slice.row.sums);
    return slices;
  }

  void DescribeProcess(const ExportedRun& run, uint64_t process) {
    const ProcessInfo info = ProcessOf(run);
    perfetto::TracePacket packet;
    if (processes_ == 1) packet.set_sequence_flags(kCleared);
    auto* track = packet.mutable_track_descriptor();
    track->set_uuid(process);
    track->set_child_ordering(perfetto::TrackDescriptor::EXPLICIT);
    // Process ids of several hosts may be the same; here each is a process of its own.
    track->mutable_process()->set_pid(static_cast<int32_t>(processes_));
    track->mutable_process()->set_process_name(PrintableText(TitleOf(run)));
    for (const std::string& word : info.argv) track->mutable_process()->add_cmdline(PrintableText(word));
    Put(&packet);
    const uint64_t steps = run.kernels.steps.count;
    const std::string what = run.kernels.run.source == SourceKind::kEstimated ? ", estimated" : "";
    PutTrack(process, kMeanStep, (steps == 0 ? "all launches" : "mean of " + CountOf(steps)) + what, std::nullopt,
             "Slices lie one behind the other, each as long as it takes on the GPU (rfinject export)");
  }

  static std::string CountOf(uint64_t steps) { return std::to_string(steps) + (steps == 1 ? " step" : " steps"); }

  // A track of slices or, with a unit, of a counter.
  void PutTrack(uint64_t process, uint64_t number, const std::string& name, std::optional<std::string_view> unit,
                std::string_view description = {}) {
    perfetto::TracePacket packet;
    auto* track = packet.mutable_track_descriptor();
    track->set_uuid(process + number);
    track->set_parent_uuid(process);
    track->set_name(name);
    track->set_sibling_order_rank(static_cast<int32_t>(number));
    if (!description.empty()) track->set_description(std::string(description));
    if (unit) track->mutable_counter()->set_unit_name(std::string(*unit));
    Put(&packet);
  }

  // When the first step or window began, which is the beginning of all that is by the clock.
  static int64_t BeginOf(const ExportedRun& run) {
    int64_t begin_ns = INT64_MAX;
    if (!run.steps.empty()) begin_ns = run.steps.front().start_unix_ns;
    for (const PmWindowInfo& window : run.run.pm_windows) begin_ns = std::min(begin_ns, window.start_unix_ns);
    return begin_ns;
  }

  // Times are a file's, and may be any numbers.
  static double NsBetween(int64_t from, int64_t to) {
    int64_t ns = 0;
    if (__builtin_sub_overflow(to, from, &ns)) ns = to < from ? INT64_MIN : INT64_MAX;
    return static_cast<double>(ns);
  }

  void PutSteps(const ExportedRun& run, uint64_t process) {
    if (run.steps.empty()) return;
    // Of an estimate it is the clock of the machine that ran the program.
    PutTrack(process, kSteps,
             CountOf(run.steps.size()) +
                 (run.kernels.run.source == SourceKind::kEstimated ? " by the host's clock" : " by the clock"),
             std::nullopt);
    const int64_t zero_ns = BeginOf(run);
    double end_ns = 0;  // of the step before: slices of a track do not overlap, though a clock may have been set back
    for (const StepSpan& step : run.steps) {
      TrackEvent begin = EventOf(TrackEvent::SLICE_BEGIN, process + kSteps);
      begin.add_categories("step");
      begin.set_name("step " + std::to_string(step.index) + (step.armed ? ", counters on" : ""));
      if (step.start_unix_ns >= kOldestUnixNs) {
        Annotate("start_unix_ns", static_cast<uint64_t>(step.start_unix_ns), &begin);
      }
      Annotate("duration_ns", step.duration_ns, &begin);
      if (step.samples > 0) Annotate("samples", step.samples, &begin);
      if (step.data_wait_ns) Annotate("data_wait_ns", *step.data_wait_ns, &begin);
      if (step.gpu_wait_ns) Annotate("gpu_wait_ns", *step.gpu_wait_ns, &begin);
      if (step.busy_ns) Annotate("gpu_busy_ns", *step.busy_ns, &begin);
      const double start_ns = NsBetween(zero_ns, step.start_unix_ns);
      const double begin_ns = std::max(end_ns, start_ns);
      PutEvent(begin_ns, std::move(begin));
      end_ns = std::max(begin_ns, start_ns + static_cast<double>(step.duration_ns));
      PutEvent(end_ns, EventOf(TrackEvent::SLICE_END, process + kSteps));
    }
  }

  // What PM sampling saw in the windows of one process, from the first step on.
  void PutWindows(const ExportedRun& run, uint64_t process) {
    const std::vector<PmWindowInfo>& windows = run.run.pm_windows;
    if (windows.empty() || run.run.processes > 1 || run.kernels.steps.validation) return;
    const int64_t zero_ns = BeginOf(run);
    const bool has_tensor =
        std::any_of(windows.begin(), windows.end(), [](const auto& one) { return one.has_tensor; });
    PutTrack(process, kDramOverTime, "DRAM bandwidth by the clock", "B/s");
    if (has_tensor) PutTrack(process, kTensorOverTime, "Tensor pipes active by the clock", "share");
    for (const PmWindowInfo& window : windows) {
      const double begin_ns = NsBetween(zero_ns, window.start_unix_ns);
      const auto bin_ns = static_cast<double>(window.bin_ns);
      if (!(bin_ns > 0)) continue;
      const auto put = [&](uint64_t track, const auto& bins, double scale) {
        double at_ns = begin_ns;
        for (size_t i = 0; i < bins.size(); ++i, at_ns = begin_ns + static_cast<double>(i) * bin_ns) {
          PutCounter(process + track, at_ns, static_cast<double>(bins[i]) * scale);
        }
        PutCounter(process + track, at_ns, 0);
      };
      constexpr double kNsPerSecond = 1e9, kPermille = 1000;
      put(kDramOverTime, window.bin_dram_bytes, kNsPerSecond / bin_ns);
      if (window.has_tensor) put(kTensorOverTime, window.bin_tensor_permille, 1 / kPermille);
    }
  }

  static void Annotate(std::string_view name, uint64_t value, TrackEvent* event) {
    auto* annotation = event->add_debug_annotations();
    annotation->set_name(std::string(name));
    annotation->set_uint_value(value);
  }

  static void Annotate(const Column& column, size_t row, TrackEvent* event) {
    const Cell cell = column.value(row);
    if (std::holds_alternative<std::monostate>(cell)) return;
    auto* annotation = event->add_debug_annotations();
    annotation->set_name(std::string(column.info.name));
    if (const auto* text = std::get_if<std::string>(&cell)) {
      annotation->set_string_value(PrintableText(*text));
    } else if (const auto* count = std::get_if<uint64_t>(&cell)) {
      annotation->set_uint_value(*count);
    } else if (const auto* yes = std::get_if<bool>(&cell)) {
      annotation->set_bool_value(*yes);
    } else {
      annotation->set_double_value(std::get<double>(cell));
    }
  }

  void PutCounter(uint64_t track, double at_ns, double value) {
    TrackEvent event = EventOf(TrackEvent::COUNTER, track);
    event.set_double_counter_value(std::isfinite(value) ? value : 0);
    PutEvent(at_ns, std::move(event));
  }

  static TrackEvent EventOf(TrackEvent::Type type, uint64_t track) {
    TrackEvent event;
    event.set_type(type);
    event.set_track_uuid(track);
    return event;
  }

  void PutEvent(double at_ns, TrackEvent event) {
    perfetto::TracePacket packet;
    constexpr double kMostNs = 9e18;  // what a signed number of nanoseconds holds
    packet.set_timestamp(static_cast<uint64_t>(std::llround(std::clamp(at_ns, 0.0, kMostNs))));
    *packet.mutable_track_event() = std::move(event);
    Put(&packet);
  }

  void Put(perfetto::TracePacket* packet) {
    packet->set_trusted_packet_sequence_id(kSequence);
    perfetto::Trace trace;  // traces one behind the other are a trace
    trace.add_packet()->Swap(packet);
    write_(trace.SerializeAsString());
  }

  const WriteBytes write_;
  uint64_t processes_ = 0;
};

}  // namespace

std::unique_ptr<Exporter> MakePerfettoExporter(WriteBytes write) {
  return std::make_unique<PerfettoExporter>(std::move(write));
}

}  // namespace rfinject::cli
