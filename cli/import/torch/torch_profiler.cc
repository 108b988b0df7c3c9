#include "cli/import/torch/torch_profiler.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cli/import/et/execution_trace.h"
#include "cli/import/torch/byte_stream.h"
#include "cli/import/torch/names.h"
#include "cli/import/torch/overlaps.h"
#include "cli/import/torch/perfetto.h"
#include "cli/import/torch/stages.h"
#include "cli/import/torch/windows.h"
#include "cli/model/match_gpu.h"
#include "gpus/chips.h"
#include "gpus/kernel_names.h"

namespace rfinject::cli {
namespace {

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

std::string ChipOf(const DeviceInfo& device) {
  const std::string capability = absl::StrCat(device.cc_major, ".", device.cc_minor);
  if (device.name.starts_with("AMD")) return capability == "9.0" ? "gfx90a" : capability == "9.4" ? "gfx942" : "";
  const Chip* chip = ChipOfComputeCapability(capability);
  return chip == nullptr ? std::string() : std::string(chip->name);
}

std::vector<DeviceInfo> DevicesOf(const TorchRecording& recording, const ImportOptions& options) {
  std::vector<DeviceInfo> devices;
  std::set<uint32_t> used;
  for (const TorchLaunch& launch : recording.launches) used.insert(launch.device);
  if (used.empty() && !recording.devices.empty()) used.insert(recording.devices.begin()->first);
  for (const uint32_t number : used) {
    DeviceInfo device;
    device.index = number;
    auto known = recording.devices.find(number);
    // A process that sees one GPU numbers it 0, and AMD's profiler by its place in the machine.
    if (known == recording.devices.end() && recording.devices.size() == 1) known = recording.devices.begin();
    if (known != recording.devices.end()) {
      device.name = known->second.name;
      device.memory_bytes = known->second.memory_bytes;
      device.sm_count = known->second.sm_count;
      device.cc_major = known->second.cc_major;
      device.cc_minor = known->second.cc_minor;
    }
    if (device.name.empty()) device.name = options.likely_gpu;
    if (!options.gpu.empty()) device.name = options.gpu;
    device.chip = ChipOf(device);
    if (const Gpu* board = FindGpu(device.name)) device.chip = board->chip;
    devices.push_back(std::move(device));
  }
  std::sort(devices.begin(), devices.end());
  return devices;
}

// The first device's board, and one with its chip.
WorkedGpu GpuOf(const std::vector<DeviceInfo>& devices) {
  WorkedGpu gpu;
  if (devices.empty()) return gpu;
  gpu.chip = gpu.board = MatchGpu(devices[0].name, devices[0].memory_bytes);
  if (gpu.chip != nullptr) return gpu;
  const auto boards = AllGpus();
  const auto found = std::ranges::find(boards, devices[0].chip, &Gpu::chip);
  if (found != boards.end()) gpu.chip = &*found;
  return gpu;
}

// Where the file shows modules, layers are theirs; else all of it is one program.
void AddLayers(const CallTree& tree, const CostedProgram& program, RunBuilder* builder) {
  cli::Run& run = builder->run;
  if (!program.has_modules) {
    builder->SetModel(program.model);
    run.layers[{program.model, ""}].order = 1;
    return;
  }
  if (tree.named != nullptr) {
    run.key.models = tree.named->key.models;
    run.key.parameters = tree.named->key.parameters;
    run.models = tree.named->models;
  }
  for (uint32_t i = 1; i < tree.layers.size(); ++i) {
    const RecordedLayer& layer = tree.layers[i];
    if (run.models.try_emplace(layer.model, ModelInfo{.class_name = layer.model}).second) {
      run.key.models.push_back(layer.model);
    }
    LayerInfo& info = run.layers[{layer.model, layer.path}];
    if (tree.named != nullptr) {
      const auto known = tree.named->layers.find({layer.model, layer.path});
      if (known != tree.named->layers.end()) {
        info = known->second;
        continue;
      }
    }
    info.class_name = layer.class_name;
    info.order = i;
    if (layer.parent != 0) info.parent_path = tree.layers[layer.parent].path;
  }
}

// The collectives of a rank of a job, in the order in which its GPU began them.
void AddCollectives(const TorchRecording& recording, cli::Run* run) {
  if (recording.world_size < 2) return;
  std::vector<std::pair<int64_t, trace::Collective>> found;
  recording.all_activities.ForEach([&](uint64_t /*index*/, const TorchActivity& activity) {
    const TorchLaunch& launch = recording.launches[activity.launch];
    const std::string& name = recording.texts[launch.name];
    if (!AllRanksMeetIn(name)) return;
    trace::Collective one{.rank = recording.rank, .duration_ns = static_cast<uint64_t>(activity.duration)};
    one.kernel = name.substr(0, name.find_first_of("(<"));
    if (launch.group != 0) absl::StrAppend(&one.kernel, " of ", recording.texts[launch.group]);
    one.end_unix_ns = static_cast<uint64_t>(recording.base_unix_ns) + static_cast<uint64_t>(activity.start) +
                      static_cast<uint64_t>(activity.duration);
    found.emplace_back(activity.start, std::move(one));
  });
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::map<std::string, uint32_t> numbers;
  found.resize(std::min(found.size(), trace::kMostKept<trace::Collective>));
  for (auto& [start, one] : found) {
    one.index = ++numbers[one.kernel];
    run->kept.collective.Add(std::move(one));
  }
}

// What the run says beside its launches, layers and steps.
void AddFacts(const TorchRecording& recording, const CallTree& tree, const CostedProgram& program,
              RunBuilder* builder) {
  constexpr int kLayersKnown = 1;  // rfinject.v1.Tier: A
  cli::Run& run = builder->run;
  run.key.training = tree.trains();
  for (const TorchLaunch& launch : recording.launches) {
    if (launch.module == 0) continue;
    LayerInfo& info = run.layers[{program.model, recording.texts[launch.module]}];
    if (info.order == 0) info.order = run.layers.size();
  }
  run.tier = program.has_modules ? kLayersKnown : kTierNamesOnly;
  run.steps.steps = tree.step_count();
  run.steps.memory_peak_bytes = recording.memory_peak_bytes;
  if (recording.world_size > 0) {
    run.ranks = {recording.rank};
    run.process_list.emplace_back();
    run.process_list[0].rank = recording.rank;
    run.process_list[0].world_size = recording.world_size;
    AddCollectives(recording, &run);
  }
  const size_t steps = KeepsSteps(tree) ? tree.steps().size() : 0;
  for (size_t step = 0; step < steps; ++step) run.sampled_steps[std::string(kMetricTime)][step] = 1;
  builder->result.rows = recording.events;
  DefineWork(&builder->result.profile);
}

// What needs all of the recording at once: counters are told by the order of launches, operators of an execution
// trace and modules of another trace by how many there are.
uint64_t EventsOfWindow(const TorchRecording& recording, const RecordingOutline& outline,
                        const ImportOptions& options, const ExecutionTrace* shapes) {
  const bool names_modules = options.names != nullptr && outline.has_modules;
  const bool whole = !recording.counters.empty() || shapes != nullptr || names_modules;
  return whole ? kOneWindow : options.torch_window_events;
}

// `shapes` is the execution trace of the same program, or null: its operands are added to the recording's.
absl::StatusOr<Imported> ImportRecording(const std::string& path, const ImportOptions& options,
                                         TorchRecording recording, const ExecutionTrace* shapes) {
  RunBuilder builder(path, "torch.profiler");
  if (recording.all_activities.size() == 0 && recording.counters.empty()) return builder.Fail(WhyNothing(recording));
  CallTree tree{.outline = OutlineOf(recording)};
  if (options.names != nullptr && RunWithNames(*options.names, tree.trains()) == nullptr) {
    return builder.Fail("the trace for its names has no layers");
  }
  builder.run.devices = DevicesOf(recording, options);
  if (!builder.run.devices.empty()) builder.run.key.gpu = builder.run.devices[0].name;
  const CostedProgram program{.gpu = GpuOf(builder.run.devices),
                              .model = options.model.empty() ? ProgramOf(options.likely_model) : options.model,
                              .has_modules = tree.outline.has_modules || options.names != nullptr};
  JoinedCalls joined;
  CostedTimes times;
  const TorchWindows windows(recording, tree.outline, EventsOfWindow(recording, tree.outline, options, shapes));
  for (size_t i = 0; i < windows.size() && builder.fits(); ++i) {
    TorchWindow window = windows.Unpack(i, recording);
    MakeTreeOfWindow(recording, window, &tree);
    if (shapes != nullptr) joined = JoinExecutionTrace(*shapes, recording.texts, tree, &window, &recording.operands);
    PlaceLayers(recording, window, options.names.get(), &tree);
    AddCosts(recording, window, tree, program, &times, &builder);
  }
  if (!builder.fits()) return builder.Fail(kTooManyKeys);
  ForgetIdleWork(&builder.run);
  AddLayers(tree, program, &builder);
  if (!tree.steps().empty()) {
    const TimedSteps timed = TimeSteps(recording, tree.outline);
    AddStepTimes(timed.steps, timed.shown, recording.base_unix_ns, recording.rank, &builder.run);
  }
  AddFacts(recording, tree, program, &builder);
  for (const trace::Diagnostic& said : SayOf(recording, tree, times, shapes != nullptr ? &joined : nullptr)) {
    builder.Say(said);
  }
  return builder.Finish();
}

using OpenedBytes = absl::StatusOr<std::unique_ptr<ByteStream>>;

// Reads what `open` opens anew each time, whether it is JSON or a trace of Perfetto.
absl::StatusOr<TorchRecording> ReadEither(const std::function<OpenedBytes()>& open) {
  constexpr size_t kBeginning = 1024;
  const OpenedBytes first = open();
  if (!first.ok()) return first.status();
  std::string beginning(kBeginning, '\0');
  beginning.resize((*first)->Read(beginning.data(), beginning.size()));
  const OpenedBytes bytes = open();
  if (!bytes.ok()) return bytes.status();
  return LooksLikePerfettoTrace(beginning) ? ReadPerfettoTrace(**bytes) : ReadTorchRecording(**bytes);
}

absl::StatusOr<Imported> Import(const std::function<OpenedBytes()>& open, const std::string& name,
                                const ImportOptions& options) {
  absl::StatusOr<TorchRecording> recording = ReadEither(open);
  if (!recording.ok()) return FailureOf(name, recording.status());
  CutOverlaps(&*recording);
  CountLaunches(&*recording);
  CountClockJumps(&*recording);
  if (options.execution_trace.empty()) return ImportRecording(name, options, *std::move(recording), nullptr);
  absl::StatusOr<std::unique_ptr<ByteStream>> file = ByteStream::Open(options.execution_trace);
  if (!file.ok()) return FailureOf(options.execution_trace, file.status());
  const absl::StatusOr<ExecutionTrace> shapes = ReadExecutionTrace(**file);
  if (!shapes.ok()) return FailureOf(options.execution_trace, shapes.status());
  return ImportRecording(name, options, *std::move(recording), &*shapes);
}

}  // namespace

absl::StatusOr<Imported> ImportTorchProfiler(const std::string& path, const ImportOptions& options) {
  return Import([&path] { return ByteStream::Open(path); }, path, options);
}

absl::StatusOr<Imported> ImportTorchProfilerBytes(std::string_view bytes, const std::string& name,
                                                  const ImportOptions& options) {
  return Import([bytes] { return ByteStream::OfBytes(bytes); }, name, options);
}

}  // namespace rfinject::cli
