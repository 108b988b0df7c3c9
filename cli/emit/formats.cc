#include "cli/emit/formats.h"

#include <algorithm>
#include <array>
#include <vector>

#include "cli/emit/diff.h"
#include "cli/emit/sweep.h"

namespace rfinject::cli {
namespace {

constexpr auto kFormats = std::to_array<Format>({
    {"table", EmitTable,
     [](const Sweep& sweep, std::span<const Report>, const TableOptions& options, std::ostream& out) {
       EmitSweepTable(sweep, options, out);
     },
     EmitDiffTable,
     [](std::span<const StackTable> tables, const TableOptions& options, std::ostream& out) {
       EmitStackTable(tables, options.max_rows, out);
     },
     EmitMemoryTable, EmitWaitTable},
    {"json", [](std::span<const Report> reports, const TableOptions&, std::ostream& out) { EmitJson(reports, out); },
     [](const Sweep& sweep, std::span<const Report>, const TableOptions&, std::ostream& out) {
       EmitSweepJson(sweep, out);
     },
     [](const Diff& diff, const TableOptions&, std::ostream& out) { EmitDiffJson(diff, out); },
     [](std::span<const StackTable> tables, const TableOptions&, std::ostream& out) { EmitStackJson(tables, out); },
     [](std::span<const MemoryTable> tables, const TableOptions&, std::ostream& out) { EmitMemoryJson(tables, out); },
     [](std::span<const WaitTable> tables, WaitRows, const TableOptions&, std::ostream& out) {
       EmitWaitJson(tables, out);
     }},
    {"csv",
     [](std::span<const Report> reports, const TableOptions& options, std::ostream& out) {
       EmitCsv(reports, out, options.csv_texts);
     },
     [](const Sweep& sweep, std::span<const Report>, const TableOptions& options, std::ostream& out) {
       EmitSweepCsv(sweep, out, options.csv_texts);
     },
     [](const Diff& diff, const TableOptions& options, std::ostream& out) {
       EmitDiffCsv(diff, out, options.csv_texts);
     },
     [](std::span<const StackTable> tables, const TableOptions& options, std::ostream& out) {
       EmitStackCsv(tables, out, options.csv_texts);
     },
     [](std::span<const MemoryTable> tables, const TableOptions& options, std::ostream& out) {
       EmitMemoryCsv(tables, out, options.csv_texts);
     },
     [](std::span<const WaitTable> tables, WaitRows, const TableOptions& options, std::ostream& out) {
       EmitWaitCsv(tables, out, options.csv_texts);
     }},
    {"html", [](std::span<const Report> reports, const TableOptions&, std::ostream& out) { EmitHtml(reports, out); },
     [](const Sweep& sweep, std::span<const Report> reports, const TableOptions&, std::ostream& out) {
       EmitHtml(SweepPictures(sweep, reports), out);
     },
     [](const Diff& diff, const TableOptions&, std::ostream& out) { EmitDiffHtml(diff, out); }, nullptr, nullptr,
     nullptr},
    {"svg", [](std::span<const Report> reports, const TableOptions&, std::ostream& out) { EmitSvg(reports, out); },
     [](const Sweep& sweep, std::span<const Report> reports, const TableOptions&, std::ostream& out) {
       EmitSvg(SweepPictures(sweep, reports), out);
     },
     [](const Diff& diff, const TableOptions&, std::ostream& out) { EmitDiffSvg(diff, out); }, nullptr, nullptr,
     nullptr},
    {"markdown", nullptr, nullptr, EmitDiffMarkdown, nullptr, nullptr, nullptr},
    {"junit", nullptr, nullptr,
     [](const Diff& diff, const TableOptions&, std::ostream& out) { EmitDiffJunit(diff, out); }, nullptr, nullptr,
     nullptr},
});

}  // namespace

std::span<const Format> AllFormats() { return kFormats; }

const Format* FindFormat(std::string_view name) {
  const auto found =
      std::find_if(kFormats.begin(), kFormats.end(), [&](const Format& format) { return format.name == name; });
  return found == kFormats.end() ? nullptr : &*found;
}

std::string_view FormatOfName(std::string_view output) {
  const size_t dot = output.rfind('.');
  const Format* const named = dot == std::string_view::npos ? nullptr : FindFormat(output.substr(dot + 1));
  return (named != nullptr ? *named : kFormats.front()).name;
}

std::string FormatNames(std::string_view last, bool of_diff) {
  std::vector<std::string_view> all;
  for (const Format& format : kFormats) {
    if (of_diff || format.reports != nullptr) all.push_back(format.name);
  }
  std::string names(all.front());
  for (size_t i = 1; i < all.size(); ++i) {
    names += i + 1 == all.size() ? std::string(last) : ", ";
    names += all[i];
  }
  return names;
}

}  // namespace rfinject::cli
