#include "cli/import/torch_profiler.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/import/nvtx_ranges.h"
#include "cli/import/timed_steps.h"
#include "cli/import/torch/add_work.h"
#include "cli/import/torch/byte_stream.h"
#include "cli/import/torch/call_tree.h"
#include "cli/import/torch/execution_trace.h"
#include "cli/import/torch/join_execution_trace.h"
#include "cli/import/torch/kernel_precision.h"
#include "cli/import/torch/names.h"
#include "cli/import/torch/recording.h"
#include "cli/import/torch/windows.h"
#include "cli/import/torch/words.h"
#include "cli/import/torch/work.h"
#include "gpus/chips.h"
#include "gpus/gpus.h"
#include "operators/precision.h"

namespace rfinject::cli {
namespace {

std::string Milliseconds(uint64_t ns) { return absl::StrFormat("%.3g ms", static_cast<double>(ns) / 1e6); }

// What is left of a file's name without what differs from one recording of a program to the next: the time, and the
// rank. "resnet50_1623143089861" is resnet50, "dlrm_rank3" is dlrm.
std::string ProgramOf(std::string_view name) {
  constexpr size_t kDigitsOfATime = 8;
  std::string program;
  while (!name.empty()) {
    const size_t end = std::min(name.find_first_of("_-. "), name.size());
    std::string_view word = name.substr(0, end);
    name.remove_prefix(std::min(name.size(), end + 1));
    const size_t digits = word.size() - (word.find_last_not_of("0123456789") + 1);
    const std::string_view letters = word.substr(0, word.size() - digits);
    const bool counts = digits > 0 && (letters == "rank" || letters == "worker" || letters.empty());
    if (counts && (!letters.empty() || digits >= kDigitsOfATime)) continue;
    absl::StrAppend(&program, program.empty() ? "" : "_", std::string(word));
  }
  return program.empty() ? "program" : program;
}

class Importer {
 public:
  // `shapes` is the execution trace of the same program, or null.
  Importer(std::string path, const ImportOptions& options, TorchRecording recording, const ExecutionTrace* shapes)
      : path_(std::move(path)), options_(options), shapes_(shapes), recording_(std::move(recording)) {
    tree_.outline = OutlineOf(recording_);
  }

  absl::StatusOr<Imported> Run() {
    if (recording_.all_activities.size() == 0 && recording_.counters.empty()) return Fail(WhyNothing());
    if (options_.names != nullptr && RunWithNames(*options_.names, tree_.trains()) == nullptr) {
      return Fail("the trace for its names has no layers");
    }
    result_.rows = recording_.events;
    has_modules_ = tree_.outline.has_modules || options_.names != nullptr;
    model_ = options_.model.empty() ? ProgramOf(options_.likely_model) : options_.model;
    FindDevices();
    const TorchWindows windows(recording_, tree_.outline, EventsOfWindow());
    for (size_t i = 0; i < windows.size() && fits_; ++i) {
      windows.Unpack(i, &recording_);
      AddWindow();
    }
    if (!fits_) return Fail(kTooManyKeys);
    TorchWindows::Clear(&recording_);
    AddLayers();
    TimeSteps();
    Finish();
    return std::move(result_);
  }

 private:
  using enum trace::Severity;

  // What needs all of the recording at once: counters are told by the order of launches, operators of an execution
  // trace and modules of another trace by how many there are.
  uint64_t EventsOfWindow() const {
    const bool names_modules = options_.names != nullptr && tree_.outline.has_modules;
    const bool whole = !recording_.counters.empty() || shapes_ != nullptr || names_modules;
    return whole ? kOneWindow : options_.torch_window_events;
  }

  void AddWindow() {
    MakeTreeOfWindow(recording_, &tree_);
    if (shapes_ != nullptr) joined_ = JoinExecutionTrace(*shapes_, tree_, &recording_);
    PlaceLayers(recording_, options_.names.get(), &tree_);
    works_.emplace(recording_, tree_);
    FindMainKernels();
    for (size_t i = 0; i < recording_.activities.size() && fits_; ++i) AddActivity(i);
    AddCounters();
  }

  absl::Status Fail(const std::string& why) const {
    return absl::InvalidArgumentError(absl::StrCat(path_, ": ", why));
  }

  std::string NoTimes() const {
    return absl::StrCat(recording_.without_time,
                        recording_.without_time == 1 ? " event of the GPU has" : " events of the GPU have",
                        " no usable time; the first ends at byte ", recording_.without_time_at);
  }

  std::string WhyNothing() const {
    for (const auto& [category, count] : recording_.other_gpus) {
      return absl::StrCat("the recording has ", count, " events of another accelerator (", category,
                          "), and none of a GPU");
    }
    if (recording_.without_time > 0) return NoTimes() + ", and there are no others";
    return "the recording has no kernels: activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA] records them";
  }

  // --- What it ran on.
  static std::string ChipOf(const DeviceInfo& device) {
    const std::string capability = absl::StrCat(device.cc_major, ".", device.cc_minor);
    if (device.name.starts_with("AMD")) return capability == "9.0" ? "gfx90a" : capability == "9.4" ? "gfx942" : "";
    const Chip* chip = ChipOfComputeCapability(capability);
    return chip == nullptr ? std::string() : std::string(chip->name);
  }

  void FindDevices() {
    std::set<uint32_t> used;
    for (const TorchLaunch& launch : recording_.launches) used.insert(launch.device);
    if (used.empty() && !recording_.devices.empty()) used.insert(recording_.devices.begin()->first);
    for (const uint32_t number : used) {
      DeviceInfo device;
      device.index = number;
      auto known = recording_.devices.find(number);
      // A process that sees one GPU numbers it 0, and AMD's profiler by its place in the machine.
      if (known == recording_.devices.end() && recording_.devices.size() == 1) known = recording_.devices.begin();
      if (known != recording_.devices.end()) {
        device.name = known->second.name;
        device.memory_bytes = known->second.memory_bytes;
        device.sm_count = known->second.sm_count;
        device.cc_major = known->second.cc_major;
        device.cc_minor = known->second.cc_minor;
      }
      if (device.name.empty()) device.name = options_.likely_gpu;
      if (!options_.gpu.empty()) device.name = options_.gpu;
      device.chip = ChipOf(device);
      if (const Gpu* board = FindGpu(device.name)) device.chip = board->chip;
      run_.devices.push_back(std::move(device));
    }
    std::sort(run_.devices.begin(), run_.devices.end());
    const auto of_chip = [this](const Gpu& gpu) { return !run_.devices.empty() && gpu.chip == run_.devices[0].chip; };
    const auto boards = AllGpus();
    const auto found = std::find_if(boards.begin(), boards.end(), of_chip);
    if (found != boards.end()) gpu_ = &*found;
    if (!run_.devices.empty()) run_.key.gpu = run_.devices[0].name;
  }

  // Where the file shows modules, layers are theirs; else all of it is one program.
  void AddLayers() {
    if (!has_modules_) {
      run_.key.models = {model_};
      run_.models[model_] = ModelInfo{.class_name = model_};
      run_.layers[{model_, ""}].order = 1;
      return;
    }
    if (tree_.named != nullptr) {
      run_.key.models = tree_.named->key.models;
      run_.key.parameters = tree_.named->key.parameters;
      run_.models = tree_.named->models;
    }
    for (uint32_t i = 1; i < tree_.layers.size(); ++i) {
      const RecordedLayer& layer = tree_.layers[i];
      if (run_.models.try_emplace(layer.model, ModelInfo{.class_name = layer.model}).second) {
        run_.key.models.push_back(layer.model);
      }
      LayerInfo& info = run_.layers[{layer.model, layer.path}];
      if (tree_.named != nullptr) {
        const auto known = tree_.named->layers.find({layer.model, layer.path});
        if (known != tree_.named->layers.end()) {
          info = known->second;
          continue;
        }
      }
      info.class_name = layer.class_name;
      info.order = i;
      if (layer.parent != 0) info.parent_path = tree_.layers[layer.parent].path;
    }
  }

  // An operator's work is its longest kernel's: the others prepare it, or reduce what it left.
  void FindMainKernels() {
    main_.assign(recording_.spans.size(), kNoActivity);
    for (size_t i = 0; i < recording_.activities.size(); ++i) {
      const uint32_t op = OperatorAt(tree_.places[i].span);
      if (op == kNoSpan || recording_.activities[i].kind != TorchActivity::Kind::kKernel) continue;
      uint32_t& main = main_[op];
      if (main == kNoActivity || recording_.activities[i].duration > recording_.activities[main].duration) {
        main = static_cast<uint32_t>(i);
      }
    }
  }

  uint32_t OperatorAt(uint32_t span) const { return span == kNoSpan ? kNoSpan : tree_.spans[span].cost; }

  Phase PhaseOf(size_t index) const {
    const TorchActivity& activity = recording_.activities[index];
    const std::string& kernel = recording_.texts[recording_.launches[activity.launch].name];
    if (IsCommunication(activity)) return Phase::kCommunication;
    // Between host and GPU data is moved, whoever asked for it.
    if (activity.kind == TorchActivity::Kind::kCopy && (Contains(kernel, "HtoD") || Contains(kernel, "DtoH"))) {
      return Phase::kData;
    }
    const uint32_t span = tree_.places[index].span;
    return span == kNoSpan ? Phase::kOther : tree_.spans[span].phase;
  }

  LayerKey LayerOf(uint32_t span) const {
    if (!has_modules_) return {model_, ""};
    const RecordedLayer& layer = tree_.layers[span == kNoSpan ? 0 : tree_.spans[span].layer];
    return {layer.model, layer.path};
  }

  void AddActivity(size_t index) {
    const TorchActivity& activity = recording_.activities[index];
    const TorchLaunch& launched = recording_.launches[activity.launch];
    const uint32_t op = OperatorAt(tree_.places[index].span);
    LaunchKey key;
    key.kernel = recording_.texts[launched.name];
    if (key.kernel.empty()) key.kernel = "(no name)";
    key.grid = launched.grid;
    key.block = launched.block;
    key.dynamic_shared_bytes = launched.shared_bytes;
    key.device = launched.device;
    key.phase = PhaseOf(index);
    key.layer = LayerOf(tree_.places[index].span);
    const OperatorWork* work = nullptr;
    if (op != kNoSpan) {
      work = &works_->Of(op);
      key.op = work->op;
      key.signature = work->signature;
    } else if (tree_.places[index].call != kNoSpan) {
      const std::string& call = recording_.texts[recording_.calls[tree_.places[index].call].name];
      if (IsGraphLaunch(call)) key.op = call;
    }
    const auto ns = static_cast<uint64_t>(activity.duration);
    LaunchStats& stats = run_.launches[key];
    if (stats.launches == 0) fits_ = memory_.Fits(key);
    ++stats.launches;
    stats.metrics[std::string(kMetricTime)].Add(ns);
    const size_t step = tree_.StepAt(tree_.places[index].launched);
    if (step == tree_.steps().size()) {
      outside_ns_ += tree_.steps().empty() ? 0 : ns;
    } else if (tree_.steps().size() > 1) {
      AddToStep(step, ns, &stats.step_sums[std::string(kMetricTime)]);
    }
    total_ns_ += ns;
    ++result_.kernels;
    if (activity.kind != TorchActivity::Kind::kKernel) {
      moved_ns_ += ns;
      return;
    }
    if (key.phase == Phase::kCommunication) {
      communicated_ns_ += ns;
      return;
    }
    if (work == nullptr) {
      without_operator_ns_ += ns;
      return;
    }
    if (!work->lacks.empty()) {
      lacking_.Add(*work, ns);
      return;
    }
    AddWork(*work, main_[op] == index, key.kernel, gpu_, &stats);
  }

  static void AddToStep(size_t step, uint64_t ns, std::vector<StepSum>* sums) {
    const auto at = std::lower_bound(sums->begin(), sums->end(), step,
                                     [](const StepSum& sum, uint64_t wanted) { return sum.step < wanted; });
    if (at != sums->end() && at->step == step) {
      at->sum += ns;
    } else if (sums->size() < kMaxSampledStepsKept) {
      sums->insert(at, {step, ns});
    }
  }

  // Counters are of kernels that the profiler ran one by one, whose times are not those of the program. An operator's
  // work stands at the kernel that did most.
  void AddCounters() {
    std::map<uint32_t, std::pair<double, size_t>> main;  // by operator: the sum of its counters, and which they are
    for (size_t i = 0; i < tree_.counted.size(); ++i) {
      double sum = 0;
      for (const auto& [metric, value] : recording_.counters[i].values) sum += value;
      const uint32_t op = CountedOperator(i);
      if (op != kNoSpan) main[op] = std::max(main[op], std::pair(sum, i));
    }
    for (size_t i = 0; i < recording_.counters.size(); ++i) {
      const TorchCounters& one = recording_.counters[i];
      const uint32_t op = CountedOperator(i);
      LaunchKey key;
      key.kernel = recording_.texts[one.name];
      const OperatorWork* work = nullptr;
      if (op == kNoSpan) {
        key.layer = LayerOf(kNoSpan);
      } else {
        work = &works_->Of(op);
        key.op = work->op;
        key.signature = work->signature;
        key.phase = tree_.spans[tree_.counted[i].span].phase;
        key.layer = LayerOf(tree_.counted[i].span);
      }
      LaunchStats& stats = run_.launches[key];
      if (stats.launches == 0) fits_ = fits_ && memory_.Fits(key);
      if (!fits_) return;
      ++stats.launches;
      ++result_.kernels;
      for (const auto& [metric, value] : one.values) {
        const std::string& name = recording_.texts[metric];
        if (!(value >= 0) || value > 1e18) continue;
        stats.metrics[name].Add(static_cast<uint64_t>(value));
        DefineMetric(name, "", &result_.profile);
      }
      if (work == nullptr || !work->lacks.empty()) continue;
      const bool is_main = main[op].second == i;
      stats.metrics[std::string(kMetricModelFlop)].Add(is_main ? work->flop.model : 0);
      stats.metrics[std::string(kMetricCompulsoryBytes)].Add(is_main ? work->bytes : 0);
    }
  }

  uint32_t CountedOperator(size_t index) const {
    return index < tree_.counted.size() ? OperatorAt(tree_.counted[index].span) : kNoSpan;
  }

  // --- The clock.
  bool IsCommunication(const TorchActivity& activity) const {
    return activity.kind == TorchActivity::Kind::kKernel &&
           IsCommunicationKernel(recording_.texts[recording_.launches[activity.launch].name]);
  }

  // When something ran on the GPU; without communication, something else.
  std::vector<Interval> BusyIntervals(bool with_communication) const {
    std::vector<Interval> busy;
    busy.reserve(recording_.all_activities.size());
    recording_.all_activities.ForEach([&](uint64_t /*index*/, const TorchActivity& activity) {
      if (!with_communication && IsCommunication(activity)) return;
      busy.push_back({activity.start, activity.start + activity.duration});
    });
    SortByStart(&busy);
    return busy;
  }

  static void SortByStart(std::vector<Interval>* list) {
    std::sort(list->begin(), list->end(), [](const Interval& a, const Interval& b) { return a.start < b.start; });
  }

  void TimeSteps() {
    if (tree_.steps().empty()) return;
    std::vector<TimedStep> steps;
    for (const StepRange& range : tree_.steps()) {
      if (steps.size() == kMostTimedSteps) break;
      TimedStep step;
      step.at = {steps.empty() ? std::max(range.start, tree_.outline.first_time) : steps.back().at.end, range.end};
      steps.push_back(step);
    }
    std::vector<Interval> data, waits;
    const uint32_t thread = tree_.outline.step_thread;
    recording_.all_spans.ForEach([&](uint64_t /*index*/, const TorchSpan& span) {
      if (span.kind != TorchSpan::Kind::kAnnotation || span.thread != thread) return;
      if (IsLoaderName(recording_.texts[span.name])) data.push_back({span.start, span.end});
    });
    recording_.all_calls.ForEach([&](uint64_t /*index*/, const TorchCall& call) {
      if (call.thread != thread) return;
      const std::string& name = recording_.texts[call.name];
      if (Contains(name, "Synchronize") || name == "cudaMemcpy") waits.push_back({call.start, call.end});
    });
    for (std::vector<Interval>* list : {&data, &waits}) SortByStart(list);
    std::vector<Interval> busy = BusyIntervals(true);
    AddOverlap(IntervalsOf(busy), &TimedStep::busy_ns, &steps);
    AddOverlap(Merged(IntervalsOf(busy), IntervalsOf(data)), &TimedStep::busy_or_data_ns, &steps);
    const bool communicates = std::any_of(
        recording_.launches.begin(), recording_.launches.end(),
        [this](const TorchLaunch& launch) { return IsCommunicationKernel(recording_.texts[launch.name]); });
    if (communicates) {
      busy.clear();
      busy = BusyIntervals(false);
      AddOverlap(IntervalsOf(busy), &TimedStep::working_ns, &steps);
    }
    AddOverlap(IntervalsOf(data), &TimedStep::data_ns, &steps);
    AddOverlap(IntervalsOf(waits), &TimedStep::gpu_wait_ns, &steps);
    const ShownOfSteps shown{
        .data = !data.empty(), .calls = recording_.all_calls.size() > 0, .communication = communicates};
    AddStepTimes(steps, shown, recording_.base_unix_ns, recording_.rank, &run_);
  }

  // --- What is said of it.
  void Finish() {
    run_.key.source = SourceKind::kImported;
    run_.key.collector = "torch.profiler";
    run_.key.training = tree_.trains();
    run_.processes = 1;
    run_.tier = has_modules_ ? kLayersKnown : kTierNamesOnly;
    run_.steps.steps = tree_.step_count();
    run_.steps.memory_peak_bytes = recording_.memory_peak_bytes;
    if (recording_.world_size > 0) {
      run_.ranks = {recording_.rank};
      ProcessInfo process;
      process.rank = recording_.rank;
      process.world_size = recording_.world_size;
      run_.process_list = {process};
    }
    for (size_t step = 0; tree_.steps().size() > 1 && step < std::min(tree_.steps().size(), kMaxSampledStepsKept);
         ++step) {
      run_.sampled_steps[std::string(kMetricTime)][step] = 1;
    }
    DefineWork(&result_.profile);
    Explain();
    result_.profile.runs[run_.key] = std::move(run_);
  }

  // Adds a line to the report, and one on stderr where it is a warning.
  void Say(Severity severity, const char* id, const std::string& text, const std::string& remedy = "") {
    run_.kept.diagnostic.Add({.severity = severity, .id = id, .text = text, .remedy = remedy});
    if (severity != kInfo) result_.warnings.push_back(absl::StrCat(path_, ": ", text));
  }

  void Explain() {
    if (recording_.all_activities.size() == 0) {
      Say(kInfo, "counters-only",
          "counters are those of the profiler, of kernels that ran one by one: there are no times");
    } else {
      Say(kInfo, "flop-from-shapes", std::string(kWorkOfShapes));
    }
    if (!recording_.cut.empty()) {
      Say(kWarning, "recording-cut", absl::StrCat(recording_.cut, "; what came before is here"));
    }
    if (const std::string lacking = lacking_.Text(total_ns_); !lacking.empty()) {
      const bool no_shapes = recording_.operands.size() <= 1;
      Say(no_shapes ? kWarning : kInfo, "work-not-known", lacking,
          no_shapes ? "torch.profiler.profile(record_shapes=True)" : "");
    }
    ExplainRest();
    ExplainJoins();
    ExplainNames();
    ExplainStreams();
    if (outside_ns_ > 0) {
      Say(kInfo, "outside-steps",
          absl::StrCat(Milliseconds(outside_ns_), " of the GPU's time was launched outside of the ",
                       tree_.steps().size(), " steps, and is part of the sums"));
    }
    if (tree_.steps().empty()) {
      const std::string taken = tree_.step_count() > 1 ? "each pass of the trace of names" : "all of it";
      Say(kWarning, "no-steps",
          "nothing says what a step is (the profiler's step()): " + taken + " is taken for one");
    }
    if (recording_.without_time > 0) Say(kWarning, "no-times", NoTimes());
  }

  // What has no FLOP and no bytes, whatever shapes are recorded.
  void ExplainRest() {
    std::vector<std::string> parts;
    for (const auto& [ns, what] :
         {std::pair(moved_ns_, "copies and memory sets"), std::pair(communicated_ns_, "communication"),
          std::pair(without_operator_ns_, "kernels without an operator")}) {
      if (ns > 0) parts.push_back(absl::StrCat(Milliseconds(ns), " in ", what));
    }
    if (parts.empty()) return;
    Say(kInfo, "no-work",
        absl::StrCat("there are no FLOP and no bytes for ", absl::StrJoin(parts, ", "),
                     ", which no operator's rule describes"));
  }

  // What did not find where it belongs, or in two ways.
  void ExplainJoins() {
    if (tree_.without_launch > 0) {
      Say(kInfo, "launch-not-recorded",
          absl::StrCat("of ", tree_.without_launch, " of ", recording_.all_activities.size(),
                       " kernels and copies the launch is not in the file"));
    }
    if (tree_.disagree > 0) {
      Say(kInfo, "joins-disagree",
          absl::StrCat("of ", tree_.disagree,
                       " launches the profiler's number of the operator names another one than "
                       "the call that launched them; the call counts"));
    }
    if (tree_.of_graphs > 0) {
      Say(kInfo, "cuda-graphs", absl::StrCat(tree_.of_graphs, " kernels ran from CUDA graphs, and have no operator"));
    }
    if (!recording_.counters.empty() && tree_.counted.empty()) {
      Say(kInfo, "counters-not-joined",
          absl::StrCat("of ", recording_.counters.size(),
                       " kernels with counters the launches are not all in the file: they have no operator"));
    }
    if (!options_.execution_trace.empty()) {
      Say(joined_.joined == 0 ? kWarning : kInfo, "execution-trace-joined",
          absl::StrCat("of ", joined_.joined + joined_.not_joined, " operators ", joined_.joined,
                       " have operands and results of an execution trace"));
    }
  }

  // Where it ran on several streams: all of the time, by stream.
  void ExplainStreams() {
    std::map<std::pair<uint32_t, uint32_t>, uint64_t> ns;  // by device and stream
    recording_.all_activities.ForEach([&](uint64_t /*index*/, const TorchActivity& activity) {
      ns[{recording_.launches[activity.launch].device, activity.stream}] += static_cast<uint64_t>(activity.duration);
    });
    if (ns.size() < 2) return;
    std::vector<std::pair<uint64_t, std::string>> streams;
    for (const auto& [stream, time] : ns) {
      streams.emplace_back(time, absl::StrCat("stream ", stream.second, " of GPU ", stream.first));
    }
    std::sort(streams.rbegin(), streams.rend());
    constexpr size_t kNamed = 8;
    std::vector<std::string> named;
    uint64_t rest = 0;
    for (size_t i = 0; i < streams.size(); ++i) {
      if (i < kNamed) {
        named.push_back(absl::StrCat(streams[i].first, " ns on ", streams[i].second));
      } else {
        rest += streams[i].first;
      }
    }
    if (rest > 0) named.push_back(absl::StrCat(rest, " ns on ", streams.size() - kNamed, " more"));
    Say(kInfo, "streams", absl::StrCat("the GPU's time is ", absl::StrJoin(named, ", ")));
  }

  void ExplainNames() {
    if (tree_.named == nullptr) return;
    const uint64_t named = tree_.named_by_shape + tree_.named_by_order + tree_.named_modules;
    std::string text =
        absl::StrCat("names of layers are those of another trace: of ", named + tree_.not_named,
                     tree_.named_modules > 0 ? " modules, " : " forward operators ", named, " were found in it");
    if (tree_.named_by_order > 0)
      absl::StrAppend(&text, ", ", tree_.named_by_order, " of these by their order alone");
    Say(named == 0 ? kWarning : kInfo, "names-aligned", text);
  }

  static constexpr uint32_t kNoActivity = UINT32_MAX;
  static constexpr int kLayersKnown = 1;  // rfinject.v1.Tier: A
  const std::string path_;
  const ImportOptions& options_;
  const ExecutionTrace* const shapes_;
  TorchRecording recording_;
  JoinedCalls joined_;  // with an execution trace
  CallTree tree_;
  std::optional<WorkTable> works_;  // of the window
  const Gpu* gpu_ = nullptr;        // one with the chip that it ran on
  bool has_modules_ = false;
  std::string model_;
  std::vector<uint32_t> main_;  // by span: the activity that is its operator's main kernel
  LackingWork lacking_;
  uint64_t total_ns_ = 0, outside_ns_ = 0;
  uint64_t moved_ns_ = 0, communicated_ns_ = 0, without_operator_ns_ = 0;  // of what has no work
  KeyMemory memory_;
  bool fits_ = true;
  cli::Run run_;
  Imported result_;
};

absl::StatusOr<Imported> Import(absl::StatusOr<std::unique_ptr<ByteStream>> bytes, const std::string& name,
                                const ImportOptions& options) {
  if (!bytes.ok()) return FailureOf(name, bytes.status());
  absl::StatusOr<TorchRecording> recording = ReadTorchRecording(**bytes);
  if (!recording.ok()) return FailureOf(name, recording.status());
  if (options.execution_trace.empty()) return Importer(name, options, *std::move(recording), nullptr).Run();
  absl::StatusOr<std::unique_ptr<ByteStream>> file = ByteStream::Open(options.execution_trace);
  if (!file.ok()) return FailureOf(options.execution_trace, file.status());
  const absl::StatusOr<ExecutionTrace> shapes = ReadExecutionTrace(**file);
  if (!shapes.ok()) return FailureOf(options.execution_trace, shapes.status());
  return Importer(name, options, *std::move(recording), &*shapes).Run();
}

}  // namespace

absl::StatusOr<Imported> ImportTorchProfiler(const std::string& path, const ImportOptions& options) {
  return Import(ByteStream::Open(path), path, options);
}

absl::StatusOr<Imported> ImportTorchProfilerBytes(std::string_view bytes, const std::string& name,
                                                  const ImportOptions& options) {
  return Import(ByteStream::OfBytes(bytes), name, options);
}

}  // namespace rfinject::cli
