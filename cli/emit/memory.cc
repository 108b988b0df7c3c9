#include "cli/emit/memory.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "cli/emit/code_points.h"
#include "cli/emit/json_writer.h"
#include "cli/emit/text_grid.h"
#include "cli/report/report.h"
#include "cli/report/units.h"

namespace rfinject::cli {
namespace {

std::string Bytes(uint64_t bytes) { return WithPrefix(static_cast<double>(bytes), "B"); }

// Boards are sold by powers of 1024.
std::string InBoth(uint64_t bytes) {
  return absl::StrFormat("%s (%.2f GiB)", Bytes(bytes), static_cast<double>(bytes) / (1 << 30));
}

std::string LayerText(const MemoryRow& row) {
  return PrintableText(row.model.empty() ? "(no layer)" : row.layer.empty() ? row.model : row.layer);
}

// Whether the program fits; empty where it does.
std::string RefusedText(const MemoryTable& table) {
  const MemoryRow& refused = table.refused;
  if (refused.bytes == 0) return {};
  std::string text = "It does not fit: " + InBoth(refused.bytes) + " more were asked for in " +
                     std::string(PhaseName(refused.phase));
  if (!refused.model.empty()) {
    text += " of " + LayerText(refused);
    if (!refused.class_name.empty()) text += " (" + PrintableText(refused.class_name) + ")";
  }
  text += ", and the program was told that the memory is full";
  if (table.memory_bytes > 0) text += "; the device has " + InBoth(table.memory_bytes);
  return text + ".";
}

std::string PeakText(const MemoryTable& table) {
  if (!table.known) {
    std::string text =
        "Which layer's memory lies on the device is not known: it is where the program runs on a virtual GPU "
        "(rfinject --estimate "
        "GPU, with a PyTorch that is built for CUDA)";
    if (table.in_use_bytes > 0) {
      text += "; all processes together used at most " + InBoth(table.in_use_bytes) + " of the device";
    }
    return text + ".";
  }
  return "At the peak " + InBoth(table.allocated_bytes) + " were allocated, in step " + std::to_string(table.step) +
         (table.device > 0 ? " on device " + std::to_string(table.device) : "") + "; PyTorch's allocator held " +
         InBoth(table.reserved_bytes) + " for it, and that must fit. The parameters of all models are " +
         Bytes(table.parameter_bytes) + ".";
}

void WritePhases(const MemoryTable& table, const TableOptions& options, std::ostream& out) {
  TextGrid grid;
  grid.columns = {{.title = "allocated in", .right = false},
                  {.title = "usually", .right = false, .priority = 1},
                  {.title = "bytes", .width = 8},
                  {.title = "share", .width = 6}};
  for (const MemoryRow& row : table.phases) {
    grid.lines.push_back({.cells = {std::string(PhaseName(row.phase)), std::string(UsuallyOf(row.phase)),
                                    Bytes(row.bytes), Percent(row.share)}});
  }
  WriteGrid(grid, options.wide ? kAnyWidth : options.width, options.color, out);
}

void WriteLayers(const MemoryTable& table, const TableOptions& options, std::ostream& out) {
  constexpr size_t kLeastName = 16;
  TextGrid grid;
  grid.columns = {{.title = "layer", .right = false, .least_width = kLeastName, .keep_end = true},
                  {.title = "class", .right = false, .priority = 1},
                  {.title = "allocated in", .right = false},
                  {.title = "bytes", .width = 8},
                  {.title = "share", .width = 6}};
  const size_t count = options.max_rows == 0 ? table.rows.size() : std::min(table.rows.size(), options.max_rows);
  for (size_t i = 0; i < count; ++i) {
    const MemoryRow& row = table.rows[i];
    grid.lines.push_back({.cells = {LayerText(row), PrintableText(row.class_name), std::string(PhaseName(row.phase)),
                                    Bytes(row.bytes), Percent(row.share)}});
  }
  if (count < table.rows.size()) {
    uint64_t rest = 0;
    double share = 0;
    for (size_t i = count; i < table.rows.size(); ++i) {
      rest += table.rows[i].bytes;
      share += table.rows[i].share;
    }
    grid.lines.push_back({.cells = {"(" + Grouped(table.rows.size() - count) + " more: --rows 0)", "", "",
                                    Bytes(rest), Percent(share)},
                          .span = 3});
  }
  WriteGrid(grid, options.wide ? kAnyWidth : options.width, options.color, out);
}

}  // namespace

void EmitMemoryTable(std::span<const MemoryTable> tables, const TableOptions& options, std::ostream& out) {
  const char* separator = "";
  for (const MemoryTable& table : tables) {
    out << separator << PrintableText(table.title) << ": memory at the peak, by where it was allocated\n";
    separator = "\n";
    if (const std::string refused = RefusedText(table); !refused.empty()) {
      WriteWrapped(out, refused, options.width, "", "  ");
    }
    WriteWrapped(out, PeakText(table), options.width, "", "  ");
    if (!table.known) continue;
    out << '\n';
    WritePhases(table, options, out);
    out << '\n';
    WriteLayers(table, options, out);
  }
}

void EmitMemoryJson(std::span<const MemoryTable> tables, std::ostream& out) {
  JsonWriter json(out);
  json.BeginObject();
  json.Member("schema", "rfinject.memory/1");
  json.Key("runs");
  json.BeginArray();
  for (const MemoryTable& table : tables) {
    json.BeginObject();
    json.Member("device", table.title);
    const auto known = [&](std::string_view name, uint64_t value, bool is_known) {
      json.Key(name);
      is_known ? json.Count(value) : json.Null();
    };
    known("allocated_bytes", table.allocated_bytes, table.known);
    known("reserved_bytes", table.reserved_bytes, table.known);
    known("step", table.step, table.known);
    known("device_index", table.device, table.known);
    known("parameter_bytes", table.parameter_bytes, true);
    known("in_use_bytes", table.in_use_bytes, table.in_use_bytes > 0);
    known("memory_bytes", table.memory_bytes, table.memory_bytes > 0);
    json.Key("refused");
    if (table.refused.bytes == 0) {
      json.Null();
    } else {
      const auto name = [&](std::string_view key, std::string_view value, bool is_known) {
        json.Key(key);
        is_known ? json.String(value) : json.Null();
      };
      json.BeginObject();
      name("model", table.refused.model, !table.refused.model.empty());
      name("layer", table.refused.layer, !table.refused.model.empty());
      name("phase", PhaseName(table.refused.phase), true);
      json.Key("bytes");
      json.Count(table.refused.bytes);
      json.EndObject();
    }
    json.Rows("phases", MemoryOf(table.phases));
    json.Rows("rows", MemoryOf(table.rows));
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
}

void EmitMemoryCsv(std::span<const MemoryTable> tables, std::ostream& out, CsvTexts texts) {
  std::vector<RowSet> sets;
  for (size_t i = 0; i < tables.size(); ++i) {
    RowSet set;
    AppendConstant("run", uint64_t{i + 1}, &set);
    AppendConstant("device", tables[i].title, &set);
    AppendConstant("allocated_bytes", KnownCount(tables[i].allocated_bytes), &set);
    AppendConstant("reserved_bytes", KnownCount(tables[i].reserved_bytes), &set);
    RowSet rows = MemoryOf(tables[i].rows);
    set.size = rows.size;
    for (Column& column : rows.columns) set.columns.push_back(std::move(column));
    sets.push_back(std::move(set));
  }
  WriteCsv(sets, texts, out);
}

}  // namespace rfinject::cli
