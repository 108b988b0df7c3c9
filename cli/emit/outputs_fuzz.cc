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

#include "cli/emit/advice.h"
#include "cli/emit/formats.h"
#include "cli/emit/live.h"
#include "cli/emit/words.h"
#include "cli/export/export.h"
#include "cli/model/calibration.h"
#include "cli/profile/accumulator.h"
#include "cli/profile/limit.h"
#include "cli/report/column.h"
#include "cli/report/diff.h"
#include "cli/report/fold.h"
#include "cli/report/live.h"
#include "cli/report/machine.h"
#include "cli/report/memory.h"
#include "cli/report/roofs.h"
#include "cli/report/stacks.h"
#include "cli/report/sweep.h"
#include "cli/report/waits.h"
#include "cli/testing/message_mutator.h"
#include "cli/testing/outputs_input.pb.h"
#include "cli/testing/trace_bytes.h"
#include "cli/trace/dump.h"
#include "cli/trace/fields.h"
#include "cli/trace/files.h"
#include "cli/trace/follow.h"
#include "cli/trace/read.h"
#include "cli/trace/run_files.h"

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

void Check(const Format& format, const TableOptions& options, const std::string& text) {
  if (text.empty()) Fail("an empty " + std::string(format.name), text);
  if (format.name == "json" && !nlohmann::json::accept(text)) Fail("no JSON", text);
  if (format.name == "svg" || format.name == "junit") CheckXml(text);
  if (format.name == "csv") CheckCsv(text, options.csv_texts == CsvTexts::kExact);
  if (format.name == "table" || format.name == "markdown") CheckTerminal(text, options.color);
  if (format.name == "html" && text.find("<script>alert") != std::string::npos) Fail("a script", text);
}

template <typename Write>
void Make(const Format& format, const TableOptions& options, Write write) {
  std::ostringstream text;
  write(text);
  Check(format, options, std::move(text).str());
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
  const std::vector<Report> layers =
      FoldProfile(profile, MachineFor, {.by = By::kLayer, .calibration = &calibration});
  const std::vector<Report> kernels =
      FoldProfile(profile, MachineFor, {.by = By::kKernel, .calibration = &calibration});
  for (size_t i = 0; i < kernels.size(); ++i) {
    const absl::Status status =
        exporter->Add({"trace.rfx", "job", profile.runs.at(kernels[i].run), layers[i], kernels[i],
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

void Live(const FollowedRun& run, const OutputsOptions& options, const TableOptions& table, const FoldOptions& fold) {
  std::vector<TraceWriter> writers;
  for (const FollowedTrace& trace : run.traces) {
    writers.push_back({.trace = trace.path,
                       .rank = trace.process.rank,
                       .start_unix_ns = trace.process.start_unix_ns,
                       .changed_unix_ns = trace.changed_unix_ns,
                       .ended = trace.ended,
                       .damage = std::string(trace.damage.message())});
  }
  const LiveRun live = FoldLive(run.profile, writers, options.now_unix_ns(), MachineFor,
                                {.by = fold.by, .before = {1, 1}, .calibration = fold.calibration});
  const LiveLook look = {.command = "python3 train.py",
                         .table = table,
                         .most_ranks = options.most_ranks(),
                         .lines = options.lines(),
                         .paused = options.paused()};
  const std::vector<std::string> lines = LiveLines(live, look);
  if (options.lines() > 0 && lines.size() > options.lines()) Fail("live: more lines than there are", "");
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  CheckTerminal(text, table.color);
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

void MakeOutput(const OutputsInput& input) {
  const OutputsOptions& options = input.options();
  const std::vector<uint8_t> trace = TraceOf(input.chunk(), options.cut());
  if (options.output() == testing::OUTPUT_DUMP) return Dump(trace);
  const std::vector<uint8_t> other_trace = TraceOf(input.other(), 0);
  if (options.output() == testing::OUTPUT_MERGE) return Merge(trace, other_trace);

  // Small ones, so that a run is fast; the limits themselves are part of what is tested.
  const Limits limits = {.runs = 1 + options.limit_runs() % 8,
                         .rows = 1 + (options.limit_rows() + 63) % 256,
                         .name = 64 + (options.limit_name() + 192) % 1024};
  Calibration own;
  std::string error;
  if (!options.calibration().empty()) {
    own = Calibration::Shipped();
    if (!own.AddOwn(options.calibration(), error) && error.empty()) Fail("calibration: refused without a word", "");
  }
  const Calibration& calibration = options.calibration().empty() ? Calibration::Shipped() : own;
  RoofOptions roofs = {.clock = options.clock_roofs()};
  if (!options.roofs().empty()) (void)ParseUserRoofs(options.roofs(), &roofs);

  Profile profile = Read(trace), other = Read(other_trace);
  LimitProfile(limits, &profile);
  LimitProfile(limits, &other);
  if (profile.runs.empty()) return;
  static constexpr By kBys[] = {By::kModel, By::kPhase, By::kLayer, By::kOp, By::kKernel, By::kSource, By::kClass};
  const FoldOptions fold = {.by = kBys[options.by() % std::size(kBys)],
                            .depth = options.depth() % 5,
                            .step_by = static_cast<StepBy>(options.step_by() % 3),
                            .theory = options.theory() ? &other : nullptr,
                            .roofs = roofs,
                            .host_ns_per_launch = 1000.0 * options.host_us(),
                            .launch_floor_ns = 1000.0 * options.launch_floor_us(),
                            .calibration = &calibration};
  const TableOptions table = {
      .width = options.width() == 0 ? 80 : static_cast<int>(40 + options.width() % 300),
      .wide = options.wide(),
      .sorted = options.sort() != 0,
      .color = options.color(),
      .max_rows = options.max_rows() % 64,
      .columns = options.theory_columns() ? TableColumns::kTheory : TableColumns::kRoofline,
      .csv_texts = options.raw() ? CsvTexts::kExact : CsvTexts::kForSpreadsheets,
  };
  const auto choose = [&](auto member) -> const Format& {
    return Choose(AllFormats(), options.format(), [&](const Format& format) { return format.*member != nullptr; });
  };
  const auto folded = [&](const FoldOptions& how) {
    std::vector<Report> reports = FoldProfile(profile, MachineFor, how);
    if (options.sort() != 0) {
      const auto columns = ReportColumns();
      for (Report& report : reports) SortRows(columns[options.sort() % columns.size()], &report);
    }
    for (const Report& report : reports) {
      for (const Alarm& alarm : report.alarms) {
        if (alarm.id == "R006") Fail("the rows of a report do not add up to its total", AlarmText(alarm));
      }
    }
    return reports;
  };
  switch (options.output()) {
    case testing::OUTPUT_DIFF: {
      DiffOptions compare = {.by = fold.by, .correction = static_cast<Correction>(options.correction() % 3)};
      compare.calibration = &calibration;
      Gate gate;
      if (ParseGate(options.gate(), &gate)) compare.gates.push_back(gate);
      const Diff diff = MakeDiff(profile, other, MachineFor, compare);
      const Format& format = choose(&Format::diff);
      return Make(format, table, [&](auto& out) { format.diff(diff, table, out); });
    }
    case testing::OUTPUT_SWEEP: {
      const std::vector<Report> models = folded({.by = By::kModel, .calibration = &calibration});
      const Sweep sweep = MakeSweep(models);
      const Format& format = choose(&Format::sweep);
      return Make(format, table, [&](auto& out) { format.sweep(sweep, models, table, out); });
    }
    case testing::OUTPUT_STACKS: {
      std::vector<StackTable> tables;
      for (const auto& [key, run] : profile.runs) tables.push_back({key.gpu, run.steps.steps, FoldStacks(run)});
      const Format& format = choose(&Format::stacks);
      return Make(format, table, [&](auto& out) { format.stacks(tables, table, out); });
    }
    case testing::OUTPUT_MEMORY: {
      std::vector<MemoryTable> tables;
      for (const auto& [key, run] : profile.runs) tables.push_back(FoldMemory(run));
      const Format& format = choose(&Format::memory);
      return Make(format, table, [&](auto& out) { format.memory(tables, table, out); });
    }
    case testing::OUTPUT_WAITS: {
      std::vector<WaitTable> tables;
      for (const auto& [key, run] : profile.runs) tables.push_back(FoldWaits(run));
      const Format& format = choose(&Format::waits);
      const WaitRows rows = options.by() % 2 == 0 ? WaitRows::kParts : WaitRows::kRanks;
      return Make(format, table, [&](auto& out) { format.waits(tables, rows, table, out); });
    }
    case testing::OUTPUT_ADVICE: {
      const std::vector<Report> reports = folded(fold);
      const AdviceOptions advice = {.width = table.width, .all = options.all_advice()};
      static constexpr const char* kFormats[] = {"table", "markdown", "json"};
      const size_t which = options.format() % 3;
      return Make(*FindFormat(kFormats[which]), table, [&](auto& out) {
        if (which == 0) EmitAdviceText(reports, advice, out);
        if (which == 1) EmitAdviceMarkdown(reports, advice, out);
        if (which == 2) EmitAdviceJson(reports, out);
      });
    }
    case testing::OUTPUT_FOLDER:
      return Live(Follow(trace, other_trace), options, table, fold);
    case testing::OUTPUT_LIVE: {
      FollowedRun run;
      run.profile = profile;
      for (const auto& [key, one] : profile.runs) {
        for (const ProcessInfo& process : one.process_list) {
          run.traces.push_back({.path = "a.rfx", .process = process, .ended = run.traces.size() % 2 == 1});
        }
      }
      return Live(run, options, table, fold);
    }
    case testing::OUTPUT_EXPORT:
      return Export(
          Choose(AllExports(), options.format(), [](const ExportKind& kind) { return kind.make != nullptr; }),
          profile, calibration);
    default: {
      const std::vector<Report> reports = folded(fold);
      const Format& format = choose(&Format::reports);
      return Make(format, table, [&](auto& out) { format.reports(reports, table, out); });
    }
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
