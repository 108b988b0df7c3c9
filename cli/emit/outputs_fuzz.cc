// Makes every output of whatever a trace may hold. Its input is a Chunk of the schema, and its mutations are Chunks,
// so nearly all of them get past the reader, and test what comes after it. JSON, SVG and JUnit must be what their
// formats' own parsers take, and a terminal must get no control character.
#include <expat.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/emit/advice.h"
#include "cli/emit/formats.h"
#include "cli/emit/live.h"
#include "cli/export/export.h"
#include "cli/profile/limit.h"
#include "cli/report/diff.h"
#include "cli/report/fold.h"
#include "cli/report/live.h"
#include "cli/report/machine.h"
#include "cli/report/memory.h"
#include "cli/report/stacks.h"
#include "cli/report/sweep.h"
#include "cli/testing/message_mutator.h"
#include "cli/testing/trace_bytes.h"
#include "cli/trace/read.h"
#include "proto/rfinject/v1/trace.pb.h"

namespace {

using namespace rfinject::cli;  // NOLINT: the harness is all there is here

// Small, so that a run is fast; the limits themselves are part of what is tested.
constexpr Limits kLimits = {.runs = 4, .rows = 100, .name = 256};

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

void Check(const Format& format, const std::string& text) {
  if (text.empty()) Fail("an empty " + std::string(format.name), text);
  if (format.name == "json" && !nlohmann::json::accept(text)) Fail("no JSON", text);
  if (format.name == "svg" || format.name == "junit") CheckXml(text);
  if (format.name == "table" || format.name == "markdown") {
    for (const char c : text) {
      if ((static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7F) Fail("a control character", text);
    }
  }
}

template <typename Write>
void Make(const Format& format, Write write) {
  std::ostringstream text;
  write(text);
  Check(format, std::move(text).str());
}

Profile ReadChunk(const rfinject::v1::Chunk& chunk) {
  std::vector<uint8_t> trace = testing::EmptyTrace();
  testing::AppendFrame(trace, 0, chunk.SerializePartialAsString());
  MemorySource source(trace);
  Profile profile = ReadTrace(source, 64u << 20).profile;
  LimitProfile(kLimits, &profile);
  return profile;
}

// Fails where an exporter does: nothing that a trace may hold is a reason for that.
void Export(const Profile& profile) {
  const std::vector<Report> layers = FoldProfile(profile, MachineFor, {.by = By::kLayer});
  const std::vector<Report> kernels = FoldProfile(profile, MachineFor, {.by = By::kKernel});
  for (const ExportKind& kind : AllExports()) {
    if (kind.make == nullptr) continue;
    std::string bytes;
    const auto exporter = kind.make([&bytes](std::string_view more) { bytes += more; });
    for (size_t i = 0; i < kernels.size(); ++i) {
      const absl::Status status =
          exporter->Add({"trace.rfx", "job", profile.runs.at(kernels[i].run), layers[i], kernels[i]});
      if (!status.ok()) Fail(std::string(kind.name) + ": " + std::string(status.message()), bytes);
    }
    const absl::Status status = exporter->Finish();
    if (!status.ok() || bytes.empty()) Fail(std::string(kind.name) + ": " + std::string(status.message()), bytes);
  }
}

// `other` is what a diff compares `profile` with.
void MakeAll(const Profile& profile, const Profile& other) {
  static constexpr By kBys[] = {By::kModel, By::kPhase, By::kLayer, By::kOp, By::kKernel, By::kSource, By::kClass};
  const TableOptions options;
  for (const By by : kBys) {
    const std::vector<Report> reports = FoldProfile(profile, MachineFor, {.by = by});
    const Diff diff = MakeDiff(profile, other, MachineFor, {.by = by});
    for (const Format& format : AllFormats()) {
      if (format.reports != nullptr) Make(format, [&](auto& out) { format.reports(reports, options, out); });
      Make(format, [&](auto& out) { format.diff(diff, options, out); });
    }
  }
  const std::vector<Report> models = FoldProfile(profile, MachineFor, {.by = By::kModel});
  std::ostringstream advice;
  EmitAdviceText(models, {.all = true}, advice);
  EmitAdviceMarkdown(models, {.all = true}, advice);
  std::ostringstream json;
  EmitAdviceJson(models, json);
  Check(*FindFormat("json"), std::move(json).str());
  const std::vector<TraceWriter> writers = {{.trace = "a", .rank = 0}, {.trace = "b", .rank = 1, .ended = true}};
  std::string lines;
  for (const std::string& line : LiveLines(FoldLive(profile, writers, 1, MachineFor, {}), {})) lines += line + "\n";
  Check(*FindFormat("table"), lines);
  const Sweep sweep = MakeSweep(models);
  std::vector<StackTable> tables;
  for (const auto& [key, run] : profile.runs) tables.push_back({key.gpu, run.steps.steps, FoldStacks(run)});
  std::vector<MemoryTable> memory;
  for (const auto& [key, run] : profile.runs) memory.push_back(FoldMemory(run));
  for (const Format& format : AllFormats()) {
    if (format.sweep != nullptr) Make(format, [&](auto& out) { format.sweep(sweep, models, options, out); });
    if (format.stacks != nullptr) Make(format, [&](auto& out) { format.stacks(tables, options, out); });
    if (format.memory != nullptr) Make(format, [&](auto& out) { format.memory(memory, options, out); });
  }
  Export(profile);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  rfinject::v1::Chunk chunk;
  if (!chunk.ParseFromArray(data, static_cast<int>(size))) return 0;
  const Profile profile = ReadChunk(chunk);
  if (profile.runs.empty()) return 0;
  std::mt19937_64 random(size);
  testing::MutateMessage(&chunk, random);
  MakeAll(profile, ReadChunk(chunk));
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  std::mt19937_64 random(seed);
  rfinject::v1::Chunk chunk;
  if (!chunk.ParseFromArray(data, static_cast<int>(size))) chunk.Clear();
  testing::MutateMessage(&chunk, random);
  const std::string bytes = chunk.SerializePartialAsString();
  if (bytes.size() > max_size) return size;
  std::copy(bytes.begin(), bytes.end(), data);
  return bytes.size();
}
