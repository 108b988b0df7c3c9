// Makes an output of whatever traces may hold. Its input is a message (outputs_input.proto), and its mutations are
// messages, so that nearly all of them get past the reader: what is judged is what stands behind it. One input makes
// one output, by options that are part of it. JSON, SVG and JUnit must be what their formats' own parsers take, a
// table of CSV must have as many fields in each line and no formula, and a terminal must get no control character.
#include <expat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/export/export.h"
#include "cli/format/format.h"
#include "cli/model/calibration.h"
#include "cli/profile/accumulator.h"
#include "cli/profile/limit.h"
#include "cli/report/compare/diff.h"
#include "cli/report/fold.h"
#include "cli/report/live.h"
#include "cli/report/machine.h"
#include "cli/report/rows/column.h"
#include "cli/report/rows/roofs.h"
#include "cli/testing/message_mutator.h"
#include "cli/testing/outputs_input.pb.h"
#include "cli/testing/trace_bytes.h"
#include "cli/trace/dump.h"
#include "cli/trace/fields.h"
#include "cli/trace/files.h"
#include "cli/trace/follow.h"
#include "cli/trace/read.h"
#include "cli/trace/run_files.h"
#include "cli/view/advice_view.h"
#include "cli/view/compare_views.h"
#include "cli/view/live_view.h"
#include "cli/view/views.h"
#include "cli/words/words.h"

namespace {

using namespace rfinject::cli;  // NOLINT: the harness is all there is here
using testing::OutputsInput;
using testing::OutputsOptions;

constexpr uint64_t kMostDecodedBytes = 64u << 20;

[[noreturn]] void Fail(const std::string& what, const std::string& output) {
  std::fprintf(stderr, "outputs_fuzz: %s\n%.20000s\n", what.c_str(), output.c_str());
  std::abort();
}

void CheckXml(const std::string& text) {
  XML_Parser parser = XML_ParserCreate("UTF-8");
  const bool good = XML_Parse(parser, text.data(), static_cast<int>(text.size()), 1) == XML_STATUS_OK;
  const std::string why = good ? "" : XML_ErrorString(XML_GetErrorCode(parser));
  XML_ParserFree(parser);
  if (!good) Fail("not well-formed: " + why, text);
}

// No control characters but line feeds and, of a coloured table, sequences that set a colour.
void CheckTerminal(const std::string& text, bool color) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (color && c == 0x1B && i + 1 < text.size() && text[i + 1] == '[') {
      i = text.find_first_not_of("0123456789;", i + 2);
      if (i == std::string::npos || text[i] != 'm') Fail("a control sequence", text);
    } else if ((c < 0x20 && c != '\n') || c == 0x7F) {
      Fail("a control character", text);
    }
  }
}

bool IsNumber(const std::string& field) {
  double number = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), number);
  return error == std::errc() && end == field.data() + field.size();
}

// RFC 4180, by a reader of its own.
void CheckCsv(const std::string& text, bool raw) {
  size_t columns = 0, fields = 0;
  std::string field;
  const auto end_field = [&] {
    ++fields;
    const bool formula = !field.empty() && std::string_view("=+-@\t\r").find(field[0]) != std::string_view::npos;
    if (!raw && formula && !IsNumber(field)) Fail("a formula", field);
    field.clear();
  };
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"' && field.empty()) {
      for (++i; i < text.size(); ++i) {
        if (text[i] == '"' && (i + 1 == text.size() || text[i + 1] != '"')) break;
        if (text[i] == '"') ++i;
        field += text[i];
      }
      if (i + 1 < text.size() && text[i + 1] != ',' && text[i + 1] != '\n') Fail("a quote inside a field", text);
    } else if (text[i] == ',') {
      end_field();
    } else if (text[i] == '\n') {
      end_field();
      if (columns != 0 && fields != columns) Fail("lines of different length", text);
      columns = std::exchange(fields, 0);
    } else {
      field += text[i];
    }
  }
  if (fields != 0 || !field.empty()) Fail("the last line has no end", text);
}

void CheckText(const Format& format, const WriteOptions& options, const std::string& text) {
  if (text.empty()) Fail("an empty " + std::string(format.name), text);
  if (format.name == "json" && !nlohmann::json::accept(text)) Fail("no JSON", text);
  if (format.name == "svg" || format.name == "junit") CheckXml(text);
  if (format.name == "csv") CheckCsv(text, options.csv_texts == CsvTexts::kExact);
  if (format.name == "table" || format.name == "markdown") CheckTerminal(text, options.color);
  if (format.name == "html" && text.find("<script>alert") != std::string::npos) Fail("a script", text);
}

// What a format refuses it must refuse with a reason.
void Write(const Document& document, const Format& format, const WriteOptions& options) {
  std::ostringstream text;
  const absl::Status status = format.write(document, options, text);
  if (status.ok()) return CheckText(format, options, std::move(text).str());
  if (status.message().empty()) Fail("refused without a word", std::string(format.name));
}

using Chunks = google::protobuf::RepeatedPtrField<rfinject::v1::Chunk>;

std::vector<uint8_t> TraceOf(const Chunks& chunks, size_t cut) {
  std::vector<uint8_t> trace = testing::EmptyTrace();
  uint32_t sequence = 0;
  for (const rfinject::v1::Chunk& chunk : chunks) {
    testing::AppendFrame(trace, sequence++, chunk.SerializePartialAsString());
  }
  trace.resize(trace.size() - std::min(cut, trace.size()));
  return trace;
}

Profile Read(const std::vector<uint8_t>& trace) {
  MemorySource source(trace);
  return ReadTrace(source, kMostDecodedBytes).profile;
}

// Fails where an exporter does: nothing that a trace may hold is a reason for that.
void Export(const ExportKind& kind, const Profile& profile, const Calibration& calibration) {
  std::string bytes;
  const auto exporter = kind.make([&bytes](std::string_view more) { bytes += more; });
  for (const auto& [key, run] : profile.runs) {
    const std::vector<Report> reports =
        FoldRunBy(profile, run, MachineFor(run), {.calibration = &calibration}, kind.groupings());
    const absl::Status status = exporter->Add({"trace.rfx", "job", run, reports[0], reports[1],
                                               profile.trace_ids.empty() ? "" : *profile.trace_ids.begin()});
    if (!status.ok()) Fail(std::string(kind.name) + ": " + std::string(status.message()), bytes);
  }
  const absl::Status status = exporter->Finish();
  if (!status.ok() || bytes.empty()) Fail(std::string(kind.name) + ": " + std::string(status.message()), bytes);
  if (kind.text) CheckTerminal(bytes, false);
}

void Dump(const std::vector<uint8_t>& trace) {
  MemorySource source(trace);
  FrameReader frames(source);
  std::string text;
  while (frames.Next()) {
    FieldCursor cursor(frames.payload(), frames.payload_offset());
    for (Field record; cursor.Next(&record);) text += RecordText(record) + "\n";
  }
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0x80) Fail("dump: not ASCII", text);
  }
  CheckTerminal(text, false);
}

// Two traces are the same sum whichever way they are added up, and a sum that is written is what is read again.
void Merge(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
  Profile sum = Read(a);
  if (!sum.Merge(Read(b)).ok()) return;  // metrics of one name that differ
  Accumulator accumulator;
  for (const std::vector<uint8_t>* trace : {&a, &b}) {
    MemorySource source(*trace);
    Decoder decoder;
    TraceRecords records = ReadRecords(source, &decoder, kMostDecodedBytes);
    if (records.usable) std::move(records.applier).AddTo(&accumulator);
  }
  if (std::move(accumulator).Take() != sum) Fail("merge: two ways to add up differ", "");
  const std::vector<uint8_t> written = testing::WrittenTrace(sum);
  if (written.empty()) Fail("merge: a sum that cannot be written", "");
  // Parents that form a circle are cut by writing; what is left comes back as it is.
  const Profile read = Read(written);
  if (Read(testing::WrittenTrace(read)) != read) Fail("merge: a sum changes when it is written and read", "");
}

// A folder in memory that goes away with the process.
const std::string& Folder() {
  static const std::string* const folder = [] {
    std::string name = "/dev/shm/outputs_fuzz.XXXXXX";
    if (mkdtemp(name.data()) == nullptr) Fail("no folder: " + name, "");
    std::atexit([] { std::filesystem::remove_all(Folder()); });
    return new std::string(std::move(name));
  }();
  return *folder;
}

// What `top` does with a folder of traces.
FollowedRun Follow(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
  size_t number = 0;
  for (const std::vector<uint8_t>* trace : {&a, &b}) {
    std::ofstream file(Folder() + "/" + std::to_string(number++) + ".rfx", std::ios::binary);
    file.write(reinterpret_cast<const char*>(trace->data()), static_cast<std::streamsize>(trace->size()));
  }
  const auto files = FindTraces(Folder());
  if (!files.ok() || files->size() != number) Fail("folder: not every trace is found", "");
  TraceBeginnings beginnings;
  std::vector<std::string> unknown;
  size_t grouped = 0;
  for (const RunFiles& run : GroupByRun(*files, &beginnings, &unknown)) grouped += run.files.size();
  if (grouped + unknown.size() != files->size()) Fail("folder: a trace is of no run", "");
  RunFollower follower(Folder());
  if (!follower.Look([] { return true; }).ok()) Fail("folder: cannot be looked at", "");
  if (*follower.Look([] { return true; })) Fail("folder: news, though nothing has changed", "");
  return follower.run();
}

// One input, as the verbs of the command take it.
struct Case {
  const OutputsOptions& options;
  Profile profile, other;
  Calibration calibration;
  WriteOptions writing;
  ViewInput input;
  const Format& format;
};

void Live(const FollowedRun& run, const Case& one) {
  std::vector<TraceWriter> writers;
  for (const FollowedTrace& trace : run.traces) {
    writers.push_back({.trace = trace.path,
                       .rank = trace.process.rank,
                       .start_unix_ns = trace.process.start_unix_ns,
                       .changed_unix_ns = trace.changed_unix_ns,
                       .ended = trace.ended,
                       .damage = std::string(trace.damage.message())});
  }
  static constexpr By kBys[] = {By::kLayer, By::kOp, By::kKernel};
  const LiveRun live =
      FoldLive(run.profile, writers, one.options.now_unix_ns(), MachineFor,
               {.by = kBys[one.options.by() % std::size(kBys)], .before = {1, 1}, .calibration = &one.calibration});
  const LiveLook look = {
      .command = "python3 train.py", .most_ranks = one.options.most_ranks(), .paused = one.options.paused()};
  WriteOptions writing = one.writing;
  writing.height = one.options.lines();
  std::ostringstream out;
  (void)FindFormat(kDefaultFormat)->write(LiveDocument(live, look), writing, out);
  const std::string text = std::move(out).str();
  const auto lines = static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  if (writing.height > 0 && lines > writing.height) Fail("live: more lines than there are", "");
  CheckTerminal(text, writing.color);
}

// The one of `all` that the options choose, of those that have what `has` asks for.
template <typename T, typename Has>
const T& Choose(std::span<const T> all, uint32_t number, Has has) {
  std::vector<const T*> those;
  for (const T& one : all) {
    if (has(one)) those.push_back(&one);
  }
  return *those[number % those.size()];
}

// The profile as the live view of a job has it, without files.
FollowedRun LiveJob(const Profile& profile) {
  FollowedRun run;
  run.profile = profile;
  for (const auto& [key, one] : profile.runs) {
    for (const ProcessInfo& process : one.process_list) {
      run.traces.push_back({.path = "a.rfx", .process = process, .ended = run.traces.size() % 2 == 1});
    }
  }
  return run;
}

Document DiffOf(const Case& one) {
  DiffOptions compare = {.by = static_cast<By>(one.options.by() % 5),
                         .correction = static_cast<Correction>(one.options.correction() % 3)};
  compare.calibration = &one.calibration;
  Gate gate;
  if (ParseGate(one.options.gate(), &gate)) compare.gates.push_back(gate);
  return DiffDocument(MakeDiff(one.profile, one.other, MachineFor, compare));
}

Document AdviceOf(const Case& one) {
  FoldOptions fold = one.input.fold;
  fold.calibration = &one.calibration;
  return AdviceDocument(FoldProfile(one.profile, MachineFor, fold), one.options.all_advice());
}

// Any view, in any format.
Document ViewOf(const Case& one, const View& view) {
  ViewInput input = one.input;
  input.profiles = {&one.profile};
  input.fold.theory = one.options.theory() ? &one.other : nullptr;
  input.fold.calibration = &one.calibration;
  if (one.options.sort() != 0 && view.sorts) {
    const auto columns = ReportColumns();
    input.look.sort = &columns[one.options.sort() % columns.size()];
  }
  Document document = view.make(input);
  for (const rfinject::cli::Check& check : document.checks) {
    if (check.name == "R006" && check.outcome == rfinject::cli::Check::Outcome::kFails) {
      Fail("the rows of a report do not add up to its total", check.text);
    }
  }
  return document;
}

Case CaseOf(const OutputsInput& input) {
  const OutputsOptions& options = input.options();
  Case one{.options = options,
           .profile = Read(TraceOf(input.chunk(), options.cut())),
           .other = Read(TraceOf(input.other(), 0)),
           .calibration = Calibration::Shipped(),
           .format = AllFormats()[options.format() % AllFormats().size()]};
  std::string error;
  if (!options.calibration().empty()) {
    if (!one.calibration.AddOwn(options.calibration(), error) && error.empty()) {
      Fail("calibration: refused without a word", "");
    }
  }
  // Small ones, so that a run is fast; the limits themselves are part of what is tested.
  const Limits limits = {.runs = 1 + options.limit_runs() % 8,
                         .rows = 1 + (options.limit_rows() + 63) % 256,
                         .name = 64 + (options.limit_name() + 192) % 1024};
  LimitProfile(limits, &one.profile);
  LimitProfile(limits, &one.other);
  one.input.machine_for = [](const Run& run) { return MachineFor(run); };
  one.input.fold = {.depth = options.depth() % 5,
                    .step_by = static_cast<StepBy>(options.step_by() % 3),
                    .roofs = {.clock = options.clock_roofs()},
                    .host_ns_per_launch = 1000.0 * options.host_us(),
                    .launch_floor_ns = 1000.0 * options.launch_floor_us()};
  if (!options.roofs().empty()) (void)ParseUserRoofs(options.roofs(), &one.input.fold.roofs);
  one.input.look.columns = options.theory_columns() ? TableColumns::kTheory : TableColumns::kRoofline;
  one.input.whole_run = one.format.whole_run;
  one.writing = {.width = options.width() == 0 ? 80 : static_cast<int>(40 + options.width() % 300),
                 .wide = options.wide(),
                 .color = options.color(),
                 .most_rows = options.max_rows() % 64,
                 .csv_texts = options.raw() ? CsvTexts::kExact : CsvTexts::kForSpreadsheets};
  return one;
}

void MakeOutput(const OutputsInput& input) {
  const OutputsOptions& options = input.options();
  const std::vector<uint8_t> trace = TraceOf(input.chunk(), options.cut());
  const std::vector<uint8_t> other_trace = TraceOf(input.other(), 0);
  if (options.output() == testing::OUTPUT_DUMP) return Dump(trace);
  if (options.output() == testing::OUTPUT_MERGE) return Merge(trace, other_trace);
  const Case one = CaseOf(input);
  if (one.profile.runs.empty()) return;
  const auto view = [&](std::string_view name) {
    return Write(ViewOf(one, *FindView(name)), one.format, one.writing);
  };
  switch (options.output()) {
    case testing::OUTPUT_DIFF:
      return Write(DiffOf(one), one.format, one.writing);
    case testing::OUTPUT_SWEEP:
      return view("run");
    case testing::OUTPUT_STACKS:
      return view("stack");
    case testing::OUTPUT_MEMORY:
      return view("memory");
    case testing::OUTPUT_WAITS:
      return view(options.by() % 2 == 0 ? "wait" : "rank");
    case testing::OUTPUT_ADVICE:
      return Write(AdviceOf(one), one.format, one.writing);
    case testing::OUTPUT_FOLDER:
      return Live(Follow(trace, other_trace), one);
    case testing::OUTPUT_LIVE:
      return Live(LiveJob(one.profile), one);
    case testing::OUTPUT_EXPORT:
      return Export(
          Choose(AllExports(), options.format(), [](const ExportKind& kind) { return kind.make != nullptr; }),
          one.profile, one.calibration);
    default:
      return view(AllViews()[options.by() % AllViews().size()].name);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  OutputsInput input;
  if (input.ParseFromArray(data, static_cast<int>(size))) MakeOutput(input);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  std::mt19937_64 random(seed);
  OutputsInput input;
  if (!input.ParseFromArray(data, static_cast<int>(size))) input.Clear();
  testing::MutateMessage(&input, random);
  const std::string bytes = input.SerializePartialAsString();
  if (bytes.size() > max_size) return size;
  std::copy(bytes.begin(), bytes.end(), data);
  return bytes.size();
}
