#include "cli/report/rows/stacks.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "cli/report/rows/row.h"
#include "proto/wire/vocabulary.h"

namespace rfinject::cli {
namespace {

std::string_view BaseName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Whether the frame is one that every launch passes through, or one that starts every program.
bool IsPlumbing(const NativeFrameInfo& frame) {
  const std::string_view name = BaseName(frame.module);
  for (const std::string_view prefix :
       {"libtorch", "libc10", "libcuda", "libcudart", "libcudnn", "libcublas", "libnccl", "libcupti", "libpython",
        "python", "librfinject", "libc.so", "libc-", "libstdc++", "ld-linux", "libpthread", "libgomp"}) {
    if (name.starts_with(prefix)) return true;
  }
  return frame.function.starts_with("at::") || frame.function.starts_with("c10::") || frame.function == "_start";
}

// "void a::b<int>(float)" is "a::b<int>".
std::string WithoutArguments(std::string_view function) {
  int depth = 0;
  size_t begin = 0, end = function.size();
  for (size_t i = 0; i < function.size(); ++i) {
    const std::string_view rest = function.substr(i);
    constexpr std::string_view kAnonymous = "(anonymous namespace)";
    if (rest.starts_with(kAnonymous)) {
      i += kAnonymous.size() - 1;
      continue;
    }
    if (depth == 0 && rest.front() == '(' && i > begin) {
      end = i;
      break;
    }
    if (depth == 0 && rest.front() == ' ') begin = i + 1;
    if (rest.front() == '<') ++depth;
    if (rest.front() == '>' && depth > 0) --depth;
  }
  return std::string(function.substr(begin, end - begin));
}

constexpr auto kStackColumns = std::to_array<ColumnOf<StackRow>>({
    {TextColumn("phase", "As in reports."), [](const StackRow& row) { return TextCell(PhaseName(row.phase)); }},
    {TextColumn("caller",
                "The innermost function that is not torch's, CUDA's or Python's own; empty without a stack."),
     [](const StackRow& row) { return TextCell(row.caller); }},
    {CountColumn("launches", "Over all measured steps."), [](const StackRow& row) { return Cell{row.launches}; }},
    {UnitColumn("time_ns", "ns", "GPU time over all measured steps."),
     [](const StackRow& row) { return Cell{row.time_ns}; }},
    {TextColumn("kernels", "Names of the kernels, with \"; \" between them."),
     [](const StackRow& row) { return TextCell(absl::StrJoin(row.kernels, "; ")); }},
    {TextColumn("stack", "Functions, outermost first, with \";\" between them."),
     [](const StackRow& row) { return TextCell(FoldedStack(row)); }},
});

}  // namespace

double StepTimeOf(const StackRow& row, uint64_t steps) {
  return row.time_ns / static_cast<double>(std::max<uint64_t>(steps, 1));
}

std::string FoldedStack(const StackRow& row) {
  std::string text;
  if (!row.stack) return text;
  for (auto frame = row.stack->rbegin(); frame != row.stack->rend(); ++frame) {
    if (!text.empty()) text += ';';
    text += absl::StrReplaceAll(FrameText(*frame), {{";", ","}});
  }
  return text;
}

RowSet StacksOf(std::span<const StackRow> rows) { return RowSetOf(kStackColumns, rows); }

std::string FrameText(const NativeFrameInfo& frame) {
  if (!frame.function.empty()) return frame.function;
  const std::string_view name = BaseName(frame.module);
  return absl::StrFormat("%s+0x%x", name.empty() ? "?" : name, frame.offset);
}

std::string CallerOf(const NativeStackInfo& stack) {
  if (stack.empty()) return {};
  const auto own = std::find_if_not(stack.begin(), stack.end(), IsPlumbing);
  const NativeFrameInfo& frame = own != stack.end() ? *own : stack.back();
  return frame.function.empty() ? FrameText(frame) : WithoutArguments(frame.function);
}

bool IsPlumbingOnly(const NativeStackInfo& stack) { return std::all_of(stack.begin(), stack.end(), IsPlumbing); }

std::vector<StackRow> FoldStacks(const Run& run) {
  struct OfStack {
    StackRow row;
    std::set<std::string> kernels;
    std::map<std::string, double> line_ns;  // of the program, where Python called
  };
  std::map<std::pair<Phase, NativeStackInfo>, OfStack> rows;
  for (const auto& [key, stats] : run.launches) {
    if (!key.layer.model.empty()) continue;
    auto& [row, kernels, line_ns] = rows[{key.phase, stats.stack ? *stats.stack : NativeStackInfo()}];
    const double before_ns = row.time_ns;
    row.stack = stats.stack;
    row.phase = key.phase;
    row.launches += stats.launches;
    // Where not every launch has a time, the mean stands for the others.
    const auto time = stats.metrics.find(std::string(kMetricTime));
    if (time != stats.metrics.end()) row.time_ns += time->second.mean() * static_cast<double>(stats.launches);
    kernels.insert(key.kernel);
    if (stats.line)
      line_ns[std::string(BaseName(stats.line->file)) + ":" + std::to_string(stats.line->line)] +=
          row.time_ns - before_ns;
  }
  std::vector<StackRow> sorted;
  for (auto& [key, value] : rows) {
    StackRow& row = value.row;
    if (row.stack) row.caller = CallerOf(*row.stack);
    // The program's line says more than the interpreter's `_start`.
    if (row.stack && IsPlumbingOnly(*row.stack) && !value.line_ns.empty()) {
      const auto longest = std::max_element(value.line_ns.begin(), value.line_ns.end(),
                                            [](const auto& a, const auto& b) { return a.second < b.second; });
      row.caller = longest->first;
      if (value.line_ns.size() > 1) absl::StrAppend(&row.caller, " and ", value.line_ns.size() - 1, " more");
    }
    row.kernels.assign(value.kernels.begin(), value.kernels.end());
    sorted.push_back(std::move(row));
  }
  std::ranges::stable_sort(sorted, std::ranges::greater{}, &StackRow::time_ns);
  return sorted;
}

}  // namespace rfinject::cli
