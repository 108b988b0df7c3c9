#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/text/units.h"
#include "cli/view/run_views.h"

namespace rfinject::cli {
namespace {

constexpr auto kParts = std::to_array<TableLook>({
    {.column = "part", .title = "of a step", .left = true},
    {.column = "mean", .title = "mean", .width = 8},
    {.column = "share", .title = "share", .width = 6},
    {.column = "p50", .title = "p50", .width = 8, .priority = 1},
    {.column = "p95", .title = "p95", .width = 8, .priority = 1},
});
constexpr auto kRanks = std::to_array<TableLook>({
    {.column = "rank", .title = "rank", .left = true},
    {.column = "steps", .title = "steps", .width = 6, .priority = 3},
    {.column = "wall_time_p50_ns", .title = "p50", .width = 8},
    {.column = "wall_time_p95_ns", .title = "p95", .width = 8},
    {.column = "gpu_busy_share", .title = "GPU busy", .width = 8},
    {.column = "data_wait_mean_ns", .title = "for data", .width = 8},
    {.column = "gpu_wait_mean_ns", .title = "for GPU", .width = 8},
    {.column = "launch_gap_mean_ns", .title = "gaps", .width = 8, .priority = 2},
    {.column = "exposed_communication_mean_ns", .title = "comm.", .width = 8},
    {.column = "late_at_collective_ns", .title = "late", .width = 8, .priority = 1},
});

constexpr auto kIdle = std::to_array<TableLook>({
    {.column = "layer", .title = "layer", .left = true},
    {.column = "phase", .title = "phase", .left = true},
    {.column = "idle_ns", .title = "idle", .width = 8},
    {.column = "idle_share", .title = "share", .width = 6},
});

std::string DurationOrUnknown(const std::optional<double>& ns) { return ns ? Duration(*ns) : "-"; }

std::string ClockText(const WaitTable& table) {
  if (table.on_cpu) {
    return "The program ran on the CPU, so the clock is that of the CPU's arithmetic: how long a GPU would be busy, "
           "or waited for, is not known. Beside a GPU a step leaves less time in which to load the next batch.";
  }
  if (table.virtual_gpu) {
    return "The clock is the virtual GPU's: this host's, with its data and its launching, and where the host waits for "
           "the GPU as long as the ideal times of the kernels. Nothing waits in earnest, so workers of a data loader "
           "have less time than beside a GPU.";
  }
  if (!table.all.data_wait.mean_ns && table.source == SourceKind::kImported) {
    return "Whether the host waits for data is not known: the recording has no scope of a DataLoader.";
  }
  if (!table.all.data_wait.mean_ns) {
    return "What the host waits for is not known: an older rfinject wrote the trace, or no loop in Python was seen.";
  }
  return {};
}

// The parts of a step that are known, a row each.
RowSet PartsOf(const StepWaits& all) {
  struct NamedPart {
    std::string_view name;
    const StepPart* part;
  };
  std::vector<NamedPart> parts;
  for (const NamedPart& one :
       {NamedPart{"by the clock", &all.wall}, NamedPart{"GPU busy", &all.gpu_busy},
        NamedPart{"GPU does nothing but communicate", &all.exposed_communication},
        NamedPart{all.clock == StepClockOf::kHost ? "GPU idle in launch gaps, at least" : "GPU idle in launch gaps",
                  &all.launch_gaps},
        NamedPart{"GPU idle, host waits for data", &all.data_idle}, NamedPart{"host waits for data", &all.data_wait},
        NamedPart{"host waits for the GPU", &all.gpu_wait},
        NamedPart{"host does its own: Python, launching", &all.own}}) {
    if (one.part->mean_ns) parts.push_back(one);
  }
  RowSet rows;
  rows.size = parts.size();
  const auto add = [&](std::string_view name, Kind kind, std::function<Cell(const StepPart&)> value) {
    rows.columns.push_back({{.name = name, .kind = kind, .unit = "ns"},
                            [parts, value = std::move(value)](size_t row) { return value(*parts[row].part); }});
  };
  rows.AddText("part", [parts](size_t row) { return std::string(parts[row].name); });
  add("mean", Kind::kUnit, [](const StepPart& part) { return KnownCell(part.mean_ns); });
  add("share", Kind::kShare, [&all](const StepPart& part) { return KnownCell(all.Share(part)); });
  add("p50", Kind::kUnit, [](const StepPart& part) { return KnownCell(part.p50_ns); });
  add("p95", Kind::kUnit, [](const StepPart& part) { return KnownCell(part.p95_ns); });
  return rows;
}

// The sentences around a table: what a step takes, whose clock that is, and how ranks differ.
Section SectionOf(const WaitTable& table) {
  Section section;
  if (table.all.steps == 0) {
    section.lead.push_back({.text = "No step has a time by the clock."});
    return section;
  }
  section.lead.push_back({.text = StepText(table)});
  if (std::string clock = ClockText(table); !clock.empty()) section.notes.push_back({.text = std::move(clock)});
  for (std::string& text : RankTexts(table)) section.notes.push_back({.text = std::move(text)});
  return section;
}

// What the GPU is idle before, a row a layer and phase.
RowSet IdleRows(const WaitTable& table) {
  RowSet rows{.size = table.idle.size(), .columns = {}};
  const auto at = [&table](size_t row) -> const IdleBefore& { return table.idle[row]; };
  rows.AddText("phase", [at](size_t row) { return std::string(kPhaseNames[static_cast<size_t>(at(row).phase)]); });
  rows.AddText("model", [at](size_t row) { return at(row).layer.model; });
  rows.AddText("layer", [at](size_t row) { return at(row).layer.path; });
  rows.columns.push_back({UnitColumn("idle_ns", "ns", "The GPU is idle before its launches, of a step."),
                          [at](size_t row) { return Cell{at(row).ns}; }});
  rows.columns.push_back({ShareColumn("idle_share", "The same over what a step takes."),
                          [&table, at](size_t row) { return Cell{at(row).ns / table.all.step_ns()}; }});
  return rows;
}

// What the GPU waits for, where that is something.
std::string GapText(const StepWaits& all) {
  const std::string waits_for = all.gpu_waits_for();
  if (waits_for.empty() || waits_for == "nothing") return {};
  std::string text = "The GPU waits for " + waits_for;
  if (all.steps_with_gaps_share) {
    text += ": it was idle for more than a tenth of " + Percent(*all.steps_with_gaps_share) +
            " of the steps that were timed";
  }
  return text + ".";
}

Data WaitData(const WaitTable& table) {
  const auto rank = [&](const std::optional<size_t>& which) {
    return which ? Cell{table.ranks[*which].rank} : Cell{};
  };
  return Data::Object()
      .Add("device", table.title)
      .Add("source", SourceName(table.source))
      .Add("slowest_rank", rank(table.slowest))
      .Add("spread_of_medians", Cell{table.spread})
      .Add("longest_data_wait_rank", rank(table.waits_most))
      .Add("gpu_waits_for", TextCell(table.all.gpu_waits_for()))
      .Add("idle_before", IdleRows(table))
      .Add("rows", RowsOf(table));
}

Document DocumentOf(std::vector<WaitTable> tables, std::string_view what,
                    std::vector<Section> (*sections_of)(const WaitTable&)) {
  const auto owner = std::make_shared<const std::vector<WaitTable>>(std::move(tables));
  Document document{.title = "rfinject report: waits", .owner = owner};
  for (const WaitTable& table : *owner) {
    std::vector<Section> sections = sections_of(table);
    sections.front().heading = table.title + ": " + std::string(what) + ", by the clock";
    std::ranges::move(sections, std::back_inserter(document.sections));
    document.lines.push_back(WithConstants({{"run", uint64_t{document.lines.size() + 1}},
                                            {"device", table.title},
                                            {"source", std::string(SourceName(table.source))}},
                                           RowsOf(table)));
  }
  document.data.Add("schema", "rfinject.waits/1").Add("runs", Data::ListOf(*owner, WaitData));
  return document;
}

// Who is late at the collectives, and what they take.
std::string CollectivesText(const Collectives& all) {
  if (all.do_not_match) {
    return "The ranks' collectives end at other times than clocks explain: they are not the same ones, so who is late is "
           "not known.";
  }
  if (all.count == 0) return {};
  const std::string transfer = "the transfer takes " + Duration(all.transfer_ns);
  const std::string met =
      "In " + Grouped(all.count) + (all.count == 1 ? " collective" : " collectives") + " the ranks meet at the end: ";
  std::string clocks;
  int64_t apart = 0;
  for (const auto& [rank, at] : all.ranks) apart = std::max(apart, std::abs(at.clock_ns));
  constexpr int64_t kWorthAWord = 1000;
  if (apart >= kWorthAWord)
    clocks = " Their hosts' clocks are up to " + Duration(static_cast<double>(apart)) + " apart by these ends.";
  if (!all.last) return met + "no rank is the last to most of them, and " + transfer + "." + clocks;
  const auto waits = std::max_element(all.ranks.begin(), all.ranks.end(), [](const auto& a, const auto& b) {
    return a.second.waits_ns < b.second.waits_ns;
  });
  return met + "rank " + RankName(*all.last) + " is late by " + Duration(all.ranks.at(*all.last).late_ns) + ", " +
         transfer + ", and rank " + RankName(waits->first) + " waits " + Duration(waits->second.waits_ns) + "." +
         clocks;
}

}  // namespace

std::string StepText(const WaitTable& table) {
  const StepWaits& all = table.all;
  const double wall = all.wall.mean_ns.value_or(0);
  const std::string clock = Duration(wall) +
                            (all.clock == StepClockOf::kGpu ? " by the GPU's clock (p50 " : " by the clock (p50 ") +
                            DurationOrUnknown(all.wall.p50_ns) + ", p95 " + DurationOrUnknown(all.wall.p95_ns) + ")";
  if (all.step_ns() > wall) {
    const std::string busy = "A step takes the " + Duration(all.step_ns()) + " that the GPU is busy";
    // In the first step there is nothing to wait for yet, and the wait after the last one is not seen.
    constexpr double kWaits = 0.05;
    if (all.gpu_wait.mean_ns.value_or(0) > kWaits * wall) {
      return busy + ", with " + clock +
             ": what the GPU has still to do at the end of a step is waited for in the next.";
    }
    return busy + ": the program does not wait for it, and runs ahead, with " + clock + ".";
  }
  const std::optional<double> busy = all.Share(all.gpu_busy);
  return "A step takes " + clock + (busy ? "; the GPU is busy for " + Percent(*busy) + " of it." : ".");
}

std::vector<std::string> RankTexts(const WaitTable& table) {
  if (table.ranks.size() < 2) return {};
  std::vector<std::string> texts;
  const auto& ranks = table.ranks;
  if (table.slowest) {
    const RankWaits& slow = ranks[*table.slowest];
    texts.push_back("Rank " + slow.rank + " is the slowest, with " + DurationOrUnknown(slow.waits.wall.p50_ns) +
                    " for its median step; the medians of the " + Grouped(ranks.size()) + " ranks are " +
                    Percent(table.spread) + " apart.");
  } else {
    texts.push_back("The median steps of the " + Grouped(ranks.size()) + " ranks are within " +
                    Percent(table.spread) + " of one another, as ranks are that wait for each other.");
  }
  if (std::string text = CollectivesText(table.collectives); !text.empty()) texts.push_back(std::move(text));
  if (table.waits_most) {
    const RankWaits& most = ranks[*table.waits_most];
    texts.push_back("Rank " + most.rank +
                    " waits longest for data: " + DurationOrUnknown(most.waits.data_wait.mean_ns) +
                    " a step, where others wait " + Duration(table.middle_data_wait_ns) + ".");
  }
  return texts;
}

std::vector<Section> WaitSections(const WaitTable& table) {
  Section section = SectionOf(table);
  section.id = "waits";
  if (table.all.steps > 0) section.table = Table{.rows = PartsOf(table.all), .looks = {kParts.begin(), kParts.end()}};
  if (const std::string gaps = GapText(table.all); !gaps.empty()) section.notes.push_back({.text = gaps});
  std::vector<Section> sections = {std::move(section)};
  // Gaps that are worth a word.
  constexpr double kGaps = 0.01;
  if (!table.idle.empty() && table.all.idle_ns().value_or(0) >= kGaps * table.all.step_ns()) {
    sections.push_back({.lead = {{.text = "The GPU is idle before the kernels of these layers, by the timed steps:"}},
                        .table = Table{.rows = IdleRows(table), .looks = {kIdle.begin(), kIdle.end()}}});
  }
  return sections;
}

Section RankSection(const WaitTable& table) {
  Section section = SectionOf(table);
  section.id = "ranks";
  if (table.all.steps == 0) return section;
  // The rows of machines begin with the whole run; people read the ranks first.
  const bool several = table.ranks.size() > 1;
  RowSet rows = RowsOf(table), total;
  if (several) {
    total = rows;
    total.size = 1;
    rows.size -= 1;
    for (Column& column : rows.columns) {
      column.value = [value = std::move(column.value)](size_t row) { return value(row + 1); };
    }
  }
  section.table = Table{.rows = std::move(rows),
                        .looks = {kRanks.begin(), kRanks.end()},
                        .total = std::move(total),
                        .total_label = "all"};
  if (table.collectives.count == 0) section.table->looks.pop_back();  // "late" is the last
  if (!several) {
    std::erase_if(section.table->rows.columns, [](const Column& column) { return column.info.name == "rank"; });
    section.table->rows.AddText(
        "rank", [&table](size_t) { return table.ranks.empty() ? std::string() : table.ranks.front().rank; });
  }
  return section;
}

Document WaitDocument(std::vector<WaitTable> tables) {
  return DocumentOf(std::move(tables), "what a step waits for", WaitSections);
}
Document RankDocument(std::vector<WaitTable> tables) {
  return DocumentOf(std::move(tables), "steps by rank",
                    [](const WaitTable& table) { return std::vector<Section>{RankSection(table)}; });
}

}  // namespace rfinject::cli
