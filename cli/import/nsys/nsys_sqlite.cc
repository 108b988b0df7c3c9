#include "cli/import/nsys/nsys_sqlite.h"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cli/import/nsys/activity.h"
#include "cli/import/nsys/found.h"
#include "cli/import/nsys/nvtx_operators.h"
#include "cli/import/nsys/overlaps.h"
#include "cli/import/nsys/ranges.h"
#include "cli/import/nsys/step_times.h"
#include "cli/import/nsys/unpacked_file.h"
#include "cli/import/nsys/untrusted_database.h"
#include "cli/import/nvtx_ranges.h"
#include "cli/import/run_builder.h"
#include "cli/import/torch/add_work.h"
#include "cli/model/match_gpu.h"
#include "gpus/kernel_names.h"

namespace rfinject::cli {
namespace {

uint32_t UnsignedAt(sqlite3_stmt* statement, int column) {
  return static_cast<uint32_t>(std::clamp<int64_t>(sqlite3_column_int64(statement, column), 0, UINT32_MAX));
}

constexpr char kCopy[] = "memcpy";
constexpr int64_t kToGpu = 1, kToHost = 2;  // of copyKind

// Names of copies as torch.profiler has them, "Memcpy HtoD (Pinned -> Device)", as far as the export says between
// what data was copied. One number stands for a name until then: copyKind, and where the export names kinds of
// memory, srcKind and dstKind in the next bytes, each plus one.
class CopyNames {
 public:
  static bool CrossesBus(int64_t number) { return KindOf(number) == kToGpu || KindOf(number) == kToHost; }

  // What to select of a table of copies with such columns.
  std::string Number(const std::set<std::string>& columns, UntrustedDatabase* database) {
    if (!columns.contains("copyKind")) return "0";
    if (!columns.contains("srcKind") || !columns.contains("dstKind") ||
        !database->ColumnsOf("ENUM_CUDA_MEM_KIND").contains("label")) {
      return "k.copyKind";
    }
    const Statement kinds = database->Prepare("SELECT id, label FROM ENUM_CUDA_MEM_KIND LIMIT 32");
    while (database->Row(kinds)) memory_[sqlite3_column_int64(kinds.get(), 0)] = ColumnText(kinds, 1);
    return "k.copyKind + (ifnull(k.srcKind, -1) + 1) * 256 + (ifnull(k.dstKind, -1) + 1) * 65536";
  }

  std::string Of(const std::string& name, int64_t number) const {
    constexpr std::pair<int64_t, const char*> kKinds[] = {
        {kToGpu, "HtoD"}, {kToHost, "DtoH"}, {8, "DtoD"}, {10, "PtoP"}};
    for (const auto& [kind, word] : kKinds) {
      if (name != kCopy || KindOf(number) != kind) continue;
      const auto from = memory_.find((number >> 8 & kByte) - 1), to = memory_.find((number >> 16 & kByte) - 1);
      if (from == memory_.end() || to == memory_.end()) return absl::StrCat("Memcpy ", word);
      return absl::StrCat("Memcpy ", word, " (", from->second, " -> ", to->second, ")");
    }
    return name;
  }

 private:
  static constexpr int64_t kByte = 0xff;
  static int64_t KindOf(int64_t number) { return number & kByte; }
  std::map<int64_t, std::string> memory_;
};

std::string ColumnOr0(const std::set<std::string>& columns, const std::string& name) {
  return columns.contains(name) ? "k." + name : "0";
}

class NsysImporter {
 public:
  NsysImporter(const std::string& path, const ImportOptions& options)
      : path_(path), options_(options), builder_(path, "nsys") {}

  absl::StatusOr<Imported> Run() {
    const absl::StatusOr<std::unique_ptr<UnpackedFile>> unpacked = UnpackedFile::Of(path_);
    if (!unpacked.ok()) return Fail(std::string(unpacked.status().message()));
    if (!database_.Open((*unpacked)->path()).ok()) return Failure();
    const std::set<std::string> columns = database_.ColumnsOf("CUPTI_ACTIVITY_KIND_KERNEL");
    if (!database_.status().ok()) return Failure();
    if (columns.empty()) {
      return Fail(
          "no table CUPTI_ACTIVITY_KIND_KERNEL: not an export of nsys, or one without CUDA kernels "
          "(nsys profile --trace cuda; nsys export --type sqlite)");
    }
    for (const char* needed : {"start", "end", "gridX", "blockX"}) {
      if (!columns.contains(needed)) return Fail(absl::StrCat("CUPTI_ACTIVITY_KIND_KERNEL has no column ", needed));
    }
    const std::string name = columns.contains("demangledName") ? "demangledName" : "shortName";
    if (!columns.contains(name)) return Fail("CUPTI_ACTIVITY_KIND_KERNEL has no column demangledName or shortName");
    if (database_.ColumnsOf("StringIds").empty()) {
      return database_.status().ok() ? Fail("no table StringIds, which has the names of kernels") : Failure();
    }
    FindDevice();
    FindNsysRanges(&database_, &ranges_);
    absl::Status status = ReadTables(columns, name);
    if (status.ok() && !callers_known_) {
      ranges_.operators.reset();
      status = ReadTablesAgain(columns, name);
    }
    if (status.ok() && overlaps_.Find(&database_)) status = ReadTablesAgain(columns, name);
    if (!status.ok()) return status;
    if (builder_.result.kernels == 0) return Fail("the export has no kernels");
    idle_ = activity_.IdleText(&database_);
    if (ranges_.steps > 0) AddNsysSteps(ranges_.step_thread, &database_, &builder_.run);
    AddFacts();
    if (!database_.status().ok()) return Failure();
    return builder_.Finish();
  }

 private:
  absl::Status Fail(const std::string& why) const { return builder_.Fail(why); }
  absl::Status Failure() const { return Fail(std::string(database_.status().message())); }

  void FindDevice() {
    if (const auto gpu_columns = database_.ColumnsOf("TARGET_INFO_GPU");
        gpu_columns.contains("name") && gpu_columns.contains("id")) {
      const Statement gpu = database_.Prepare("SELECT name FROM TARGET_INFO_GPU ORDER BY id LIMIT 1");
      if (database_.Row(gpu)) device_.name = ColumnText(gpu, 0);
    }
    if (!options_.gpu.empty() && !(options_.gpu_is_guessed && !device_.name.empty())) device_.name = options_.gpu;
    gpu_.chip = gpu_.board = MatchGpu(device_.name);
    if (gpu_.chip != nullptr) device_.chip = gpu_.chip->chip;
  }

  // Forgets what was read.
  absl::Status ReadTablesAgain(const std::set<std::string>& columns, const std::string& name) {
    builder_ = RunBuilder(path_, "nsys");
    lacking_ = {};
    found_ = {};
    places_.clear();
    place_numbers_.clear();
    activity_ = {};
    last_place_ = 0;
    overlaps_.Rewind();
    return ReadTables(columns, name);
  }

  absl::Status ReadTables(const std::set<std::string>& columns, const std::string& name) {
    const auto column = [&columns](const char* name) { return ColumnOr0(columns, name); };
    absl::Status status = Read("CUPTI_ACTIVITY_KIND_KERNEL",
                               absl::StrCat("k.", name, ", k.gridX, k.gridY, k.gridZ, k.blockX, k.blockY, k.blockZ, ",
                                            column("dynamicSharedMemory"), ", ", column("deviceId")),
                               "", Phase::kOther);
    for (const auto& [table, what] :
         {std::pair{"CUPTI_ACTIVITY_KIND_MEMCPY", kCopy}, std::pair{"CUPTI_ACTIVITY_KIND_MEMSET", "memset"}}) {
      if (!status.ok() || database_.ColumnsOf(table).empty()) continue;
      const std::string number = copies_.Number(database_.ColumnsOf(table), &database_);
      status = Read(table, absl::StrCat(number, ", 0, 0, 0, 0, 0, 0, 0, 0"), what, Phase::kData);
    }
    return status;
  }

  // --- NVTX. A launch is in the ranges that were open on its thread when it was called. Its correlation number leads
  // to the call of CUDA's runtime, and the call's thread and time lead to the ranges.

  bool HasCaller(const std::string& table) {
    return ranges_.known && callers_known_ && database_.ColumnsOf(table).contains("correlationId");
  }
  std::string Caller(const std::string& table) { return HasCaller(table) ? "r.globalTid, r.start" : "NULL, NULL"; }
  std::string CallerJoin(const std::string& table) {
    if (!HasCaller(table)) return "";
    // Numbers are a process's own.
    const bool processes = database_.ColumnsOf(table).contains("globalPid");
    return absl::StrCat(
        "LEFT JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.correlationId = k.correlationId ",
        processes ? absl::StrCat("AND r.globalTid / ", kThreadsOfProcess, " = k.globalPid / ", kThreadsOfProcess, " ")
                  : "");
  }
  std::string CallerOrder(const std::string& table) {
    return HasCaller(table) ? " ORDER BY r.globalTid, r.start" : "";
  }

  // --- Launches. What makes a key is numbers, but for the name and the place, which are looked up once each.

  struct RawKey {
    int64_t name = 0;  // in StringIds
    std::array<uint32_t, 8> numbers{};
    size_t place = 0;  // in places_
    const OperatorWork* work = nullptr;
    friend bool operator==(const RawKey&, const RawKey&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const RawKey& key) {
      return H::combine(std::move(h), key.name, key.numbers, key.place, key.work);
    }
  };

  static constexpr int64_t kNoName = -1;  // nsys counts from 0
  std::string NameOf(const Statement& names, int64_t id) {
    sqlite3_reset(names.get());
    sqlite3_bind_int64(names.get(), 1, id);
    const std::string name = database_.Row(names) ? ColumnText(names, 0) : std::string();
    return name.empty() ? "(no name)" : name;
  }

  size_t NumberOf(const NvtxPlace& place) {
    if (!places_.empty() && places_[last_place_] == place) return last_place_;
    const auto [known, is_new] =
        place_numbers_.try_emplace({place.in_step, place.path, place.op, place.phase}, places_.size());
    if (is_new) places_.push_back(place);
    return last_place_ = known->second;
  }

  // A launch that was read, and its operator's, whose work is known when all its kernels are.
  struct Launch {
    RawKey key;
    uint64_t ns = 0;
    int64_t bytes = -1;  // that a copy moves; negative: it is none, or the file does not say
    bool crosses_bus() const { return bytes >= 0 && CopyNames::CrossesBus(key.name); }
  };
  using Known = absl::flat_hash_map<RawKey, std::pair<LaunchStats*, RunBuilder::Times>>;  // of builder_

  // What is read of one table.
  struct Reading {
    std::string name;  // of all its launches; empty: each has its own
    Phase phase = Phase::kOther;
    Statement names;
    std::optional<NvtxStack> ranges;
    Known known;
    // The launches of each operator below the outermost one, `root`, which come one behind the other.
    std::map<uint32_t, std::vector<Launch>> of_operators;
    size_t held = 0;            // of them
    std::set<uint32_t> worked;  // operators below `root` whose work was added
    uint32_t root = kNoSpan;
  };

  // Adds a launch of its key; nothing where no further key fits.
  LaunchStats* Add(const Launch& launch, Reading* reading) {
    auto& [stats, times] = reading->known[launch.key];
    if (stats == nullptr) {
      const RawKey& raw = launch.key;
      LaunchKey key;
      key.kernel = reading->name.empty() ? NameOf(reading->names, raw.name) : copies_.Of(reading->name, raw.name);
      std::copy_n(raw.numbers.begin(), 3, key.grid.begin());
      std::copy_n(raw.numbers.begin() + 3, 3, key.block.begin());
      key.dynamic_shared_bytes = raw.numbers[6];
      key.device = raw.numbers[7];
      const NvtxPlace& place = places_[raw.place];
      // Between the host and the GPU data is moved, whoever asked for it.
      key.phase = IsCommunicationKernel(key.kernel) ? Phase::kCommunication
                  : launch.crosses_bus()            ? Phase::kData
                  : place.phase != Phase::kOther    ? place.phase
                                                    : reading->phase;
      key.op = raw.work != nullptr ? raw.work->op : place.op;
      if (raw.work != nullptr) key.signature = raw.work->signature;
      key.layer = reading->ranges && ranges_.steps > 0 && !place.in_step ? LayerKey{} : LayerKey{model_, place.path};
      stats = builder_.StatsOf(key);
      if (stats == nullptr) return nullptr;
      times = RunBuilder::TimesOf(stats);
    }
    ++stats->launches;
    times.Add(launch.ns);
    found_.total_ns += launch.ns;
    ++builder_.result.kernels;
    if (launch.crosses_bus()) {
      stats->metrics[std::string(kMetricPcieBytes)].Add(static_cast<uint64_t>(launch.bytes));
    }
    return stats;
  }

  // Adds the launches of one call of an operator, whose work its kernels share. The longest that multiplies, else the
  // longest, says what type its operands are.
  bool AddCall(uint32_t op, std::vector<Launch>* launches, Reading* reading) {
    std::vector<std::string> names;
    for (const Launch& launch : *launches) names.push_back(NameOf(reading->names, launch.key.name));
    std::vector<KernelOfCall> kernels;
    for (size_t i = 0; i < names.size(); ++i) kernels.push_back({names[i], (*launches)[i].ns});
    const auto rank = [](const KernelOfCall& kernel) {
      return std::pair(RoleOfKernel(kernel.name) == KernelRole::kMultiplies, kernel.ns);
    };
    const auto main = std::ranges::max_element(kernels, {}, rank);
    const OperatorWork& work = ranges_.operators->WorkOf(op, OperandsOfKernel(main->name));
    std::vector<WorkPart> parts = PartsOf(work.Shape(), kernels);
    if (!reading->worked.insert(op).second) parts.assign(parts.size(), WorkPart(WorkRange{0, 0, 1}));
    for (size_t i = 0; i < launches->size(); ++i) {
      Launch& launch = (*launches)[i];
      launch.key.work = &work;
      LaunchStats* stats = Add(launch, reading);
      if (stats == nullptr) return false;
      if (IsCommunicationKernel(names[i])) continue;
      if (!work.lacks.empty()) {
        lacking_.Add(work, launch.ns);
        continue;
      }
      AddWork(work, parts[i], kernels[i], gpu_, stats);
    }
    return true;
  }

  // The same of all that are held.
  bool AddHeld(Reading* reading) {
    for (auto& [op, launches] : reading->of_operators) {
      if (!AddCall(op, &launches, reading)) return false;
    }
    reading->of_operators.clear();
    reading->held = 0;
    return true;
  }

  // Adds a launch that was called on `thread` at `call`, or, where that is not known, anywhere.
  bool AddCalled(Launch launch, std::optional<std::pair<int64_t, int64_t>> called, Reading* reading) {
    uint32_t op = kNoSpan;
    NvtxPlace place;
    if (!called && reading->ranges && reading->name.empty()) place.op = kLaunchNotInFile;
    if (reading->ranges && called) {
      place = reading->ranges->At(called->first, called->second);
      if (ranges_.operators && reading->name.empty()) op = ranges_.operators->At(called->first, called->second);
    }
    if (op != kNoSpan) {
      place.phase = ranges_.operators->PhaseOf(op);
      if (const std::optional<std::string> layer = ranges_.operators->LayerOfBackward(op)) {
        place.path = *layer;
        place.in_step = true;
      }
    }
    launch.key.place = NumberOf(place);
    // More kernels than any operator has, of a file that is made to have as many in one.
    constexpr size_t kMostHeld = 4096;
    const uint32_t root = op == kNoSpan ? kNoSpan : ranges_.operators->RootOf(op);
    if (root != reading->root || reading->held >= kMostHeld) {
      if (!AddHeld(reading)) return false;
    }
    if (root != reading->root) reading->worked.clear();
    reading->root = root;
    if (op == kNoSpan) return Add(launch, reading) != nullptr;
    reading->of_operators[op].push_back(launch);
    ++reading->held;
    return true;
  }

  // Reads a table whose nine columns `key` are a launch's name, grid, block, shared memory and device. `name` stands
  // for the first of them where it is not empty.
  absl::Status Read(const std::string& table, const std::string& key, const std::string& name, Phase phase) {
    const std::set<std::string> columns = database_.ColumnsOf(table);
    const bool has_bytes = columns.contains("bytes") && columns.contains("copyKind");
    const auto column = [&columns](const char* of) { return ", " + ColumnOr0(columns, of); };
    const Statement statement = database_.Prepare(
        absl::StrCat("SELECT ", key, ", k.start, k.end", column("deviceId"), has_bytes ? ", k.bytes, " : ", -1, ",
                     Caller(table), column("globalPid"), column("contextId"), column("streamId"),
                     column("correlationId"), " FROM ", table, " k ", CallerJoin(table), CallerOrder(table)));
    Reading reading;
    reading.name = name;
    reading.phase = phase;
    if (name.empty()) reading.names = database_.Prepare("SELECT value FROM StringIds WHERE id = ?");
    if (!database_.status().ok()) return Failure();
    constexpr int kStart = 9, kEnd = 10, kDevice = 11, kBytes = 12, kThread = 13, kCall = 14, kProcess = 15,
                  kContext = 16, kStream = 17, kCorrelation = 18;
    const bool has_streams = columns.contains("streamId");
    if (ranges_.known && callers_known_) reading.ranges.emplace(PushPopRanges(&database_));
    if (ranges_.operators) ranges_.operators->Rewind();
    const uint64_t rows_before = builder_.result.rows;
    while (database_.Row(statement)) {
      sqlite3_stmt* row = statement.get();
      ++builder_.result.rows;
      Interval at{sqlite3_column_int64(row, kStart), sqlite3_column_int64(row, kEnd)};
      if (at.end < at.start || sqlite3_column_type(row, kStart) == SQLITE_NULL ||
          sqlite3_column_type(row, kEnd) == SQLITE_NULL) {
        ++builder_.result.skipped_lines;
        continue;
      }
      const int64_t end = at.end;
      const auto number = [row](int at) { return sqlite3_column_int64(row, at); };
      if (has_streams) {
        const NsysOverlaps::Stream stream = {number(kProcess), number(kContext), number(kDevice), number(kStream)};
        at = overlaps_.Next(at, stream, number(kCorrelation));
      }
      activity_.Add(number(kDevice), at);
      Launch launch;
      launch.ns = static_cast<uint64_t>(at.end) - static_cast<uint64_t>(at.start);
      launch.bytes = sqlite3_column_int64(row, kBytes);
      launch.key.name = sqlite3_column_type(row, 0) == SQLITE_NULL ? kNoName : sqlite3_column_int64(row, 0);
      for (size_t i = 0; i < launch.key.numbers.size(); ++i) {
        launch.key.numbers[i] = UnsignedAt(row, 1 + static_cast<int>(i));
      }
      if (at.end != end) {
        found_.overlaps.Add(
            static_cast<uint64_t>(end) - static_cast<uint64_t>(at.end),
            name.empty() ? NameOf(reading.names, launch.key.name) : copies_.Of(name, launch.key.name));
      }
      // What was launched before the file begins has no call in it, and is in no range.
      std::optional<std::pair<int64_t, int64_t>> called;
      if (sqlite3_column_type(row, kThread) != SQLITE_NULL) {
        called = {number(kThread), number(kCall)};
      } else if (reading.ranges && HasCaller(table)) {
        ++found_.without_call;
        found_.without_call_ns += launch.ns;
      }
      if (!AddCalled(launch, called, &reading)) return Fail(kTooManyKeys);
    }
    if (!AddHeld(&reading)) return Fail(kTooManyKeys);
    if (!database_.status().ok()) {
      return Fail(
          absl::StrCat("behind record ", builder_.result.rows, ": ", std::string(database_.status().message())));
    }
    if (!HasCaller(table)) return absl::OkStatus();
    const Statement all = database_.Prepare(absl::StrCat("SELECT count(*) FROM ", table));
    if (!database_.Row(all)) return Failure();
    // Each launch that several calls claim came several times.
    if (static_cast<uint64_t>(sqlite3_column_int64(all.get(), 0)) != builder_.result.rows - rows_before)
      callers_known_ = false;
    return absl::OkStatus();
  }

  void ExplainWork() {
    DefineWork(&builder_.result.profile);
    builder_.Say(
        {.id = "flop-from-shapes",
         .text = absl::StrCat(std::string(kWorkOfShapes),
                              ". NVTX ranges have no types: an operator's operands have that in the name of its "
                              "longest kernel")});
    if (const std::string lacking = lacking_.Text(found_.total_ns); !lacking.empty()) {
      builder_.Say({.id = "work-not-known", .text = lacking});
    }
    if (ranges_.operators->full()) {
      builder_.Warn(
          "it has more NVTX ranges than fit in memory, and operators in the last ones have no FLOP and no bytes");
    }
  }

  void AddFacts() {
    cli::Run& run = builder_.run;
    ForgetIdleWork(&run);
    builder_.SetModel(model_);
    run.key.training = ranges_.operators && ranges_.operators->trains();
    run.key.gpu = device_.name;
    run.devices = {device_};
    run.steps.steps = std::max<uint64_t>(ranges_.steps, 1);
    for (const auto& [key, stats] : run.launches) {
      if (!key.op.empty() && key.op != kLaunchNotInFile) run.tier = kTierNamesOnly;
      if (!key.layer.model.empty())
        run.layers.try_emplace(key.layer, LayerInfo{{.order = run.layers.size() + 1}, ""});
    }
    DefineMetric(kMetricTime, "ns", &builder_.result.profile);
    DefineMetric(kMetricPcieBytes, "byte", &builder_.result.profile);
    found_.too_many_to_search = overlaps_.gave_up();
    found_.ranges_not_nesting = ranges_.not_nesting;
    found_.SayIn(&builder_);
    if (ranges_.has_shapes) {
      ExplainWork();
    } else {
      builder_.Warn(
          "nsys has no counters, and no range has shapes (nsys profile --pytorch=autograd-shapes-nvtx): FLOP and bytes "
          "are missing, times are there");
    }
    if (ranges_.steps == 0) {
      builder_.Warn(
          "no NVTX range says what a step is (torch.cuda.nvtx.range_push(\"step\")): all of it is taken for one");
    }
    if (!callers_known_) {
      builder_.Warn(
          "several calls in CUPTI_ACTIVITY_KIND_RUNTIME have one correlationId: which NVTX ranges a launch was in is "
          "not known, and they are left out");
    }
    if (!idle_.empty()) {
      builder_.Warn(idle_);
      builder_.Say({.id = "gpu-idle", .text = idle_});
    }
    if (builder_.result.skipped_lines > 0) {
      builder_.Say(
          {.severity = trace::Severity::kWarning,
           .id = "no-times",
           .text = absl::StrCat(builder_.result.skipped_lines, " records without a valid time were left out")});
    }
  }

  const std::string path_;
  const ImportOptions& options_;
  const std::string model_ = options_.model.empty() ? "program" : options_.model;
  bool callers_known_ = true;  // the calls' numbers lead from a launch to one call
  std::string idle_;           // what is said of the time in which nothing ran; empty: nothing
  DeviceInfo device_;
  WorkedGpu gpu_;
  NsysRanges ranges_;
  LackingWork lacking_;
  NsysFound found_;
  std::vector<NvtxPlace> places_;
  std::map<std::tuple<bool, std::string, std::string, Phase>, size_t> place_numbers_;
  size_t last_place_ = 0;
  NsysActivity activity_;
  NsysOverlaps overlaps_;
  CopyNames copies_;
  UntrustedDatabase database_;
  RunBuilder builder_;
};

}  // namespace

absl::StatusOr<Imported> ImportNsysSqlite(const std::string& path, const ImportOptions& options) {
  return NsysImporter(path, options).Run();
}

}  // namespace rfinject::cli
