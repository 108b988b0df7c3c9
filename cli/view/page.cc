#include "cli/view/page.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_join.h"
#include "cli/picture/names.h"
#include "cli/report/facts/schemas.h"
#include "cli/report/rows/picture_data.h"
#include "cli/text/cell_text.h"
#include "cli/text/units.h"
#include "cli/view/advice_view.h"
#include "cli/words/glossary.h"
#include "cli/words/opening.h"
#include "cli/words/words.h"

namespace rfinject::cli {
namespace {

constexpr auto kRoofs = std::to_array<TableLook>({
    {.column = "label", .title = "Roof", .left = true},
    {.column = "level", .title = "Level", .left = true},
    {.column = "kind", .title = "Kind", .left = true},
    {.column = "peak_flop_per_s", .title = "Peak", .unit = "FLOP/s"},
    {.column = "bytes_per_s", .title = "Bandwidth", .unit = "B/s"},
    {.column = "ridge_flop_per_byte", .title = "Ridge, FLOP/B"},
    {.column = "used", .title = "Used", .left = true},
});

std::string ProcessText(const ProcessInfo& process) {
  std::string text = "rank " + std::to_string(process.rank) + ", pid " + std::to_string(process.pid);
  const auto part = [&](const char* name, const std::string& value) {
    if (!value.empty()) text += std::string(", ") + name + value;
  };
  part("on ", process.host);
  part("torch ", process.torch_version);
  part("torchvision ", process.torchvision_version);
  part("Python ", process.python_version);
  part("CUDA ", process.cuda_version);
  part("cuDNN ", process.cudnn_version);
  part("driver ", process.driver_version);
  part("rfinject ", process.rfinject_version);
  part("job ", process.job_id);
  part("", absl::StrJoin(process.argv, " "));
  return text;
}

std::string PolicyText(const PolicyInfo& policy) {
  constexpr const char* kState[] = {"unknown", "off", "on"};
  const auto state = [&](uint32_t value) { return std::string(kState[std::min<uint32_t>(value, 2)]); };
  return "TF32 in matmul " + state(policy.matmul_tf32) + ", in cuDNN " + state(policy.cudnn_tf32) + ", autocast " +
         (policy.autocast_dtype.empty() ? "off" : policy.autocast_dtype) + ", cudnn.benchmark " +
         state(policy.cudnn_benchmark) + ", cudnn.deterministic " + state(policy.cudnn_deterministic);
}

struct OwnedPage {
  std::vector<Report> reports;  // with rows for equal layers of repeated blocks
  std::vector<WaitTable> waits;
  std::vector<MemoryTable> memory;
  std::vector<Timeline> timelines;
  std::vector<std::vector<StackRow>> stacks;
};

Section OpeningSection(const Report& report) {
  Section section{.id = "run"};
  for (const std::string& line : OpeningText(report)) section.lead.push_back({.text = line});
  return section;
}

Section PhaseSection(const Report& report) {
  Section section = RowSection(report, By::kPhase, report.phases, {});
  section.tab = "Phases";
  const std::vector<Row> phases = PhaseTotals(report);
  const auto add = [&](std::string title, auto of) {
    std::vector<double> values;
    for (const Row& row : phases) values.push_back(of(row.sums));
    const std::vector<double> shares = Shares(values);
    if (shares.empty()) return;
    Bar& bar = section.bars.emplace_back(Bar{.title = std::move(title)});
    for (size_t i = 0; i < phases.size(); ++i) bar.parts.emplace_back(PhaseName(phases[i].phase), shares[i]);
  };
  add("GPU time", [](const Sums& sums) { return sums.time_ns(); });
  add("FLOP", [](const Sums& sums) { return sums.total_flop(); });
  add("DRAM bytes", [](const Sums& sums) { return sums.dram_bytes(); });
  return section;
}

Section RoofSection(const Report& report) {
  Section section{.id = "roofs", .heading = "Roofs", .folded = true};
  section.table = Table{.rows = RoofsOf(report), .looks = {kRoofs.begin(), kRoofs.end()}};
  return section;
}

// What is known of the run, a name and a value each.
Section RunSection(const Report& report) {
  Section section{.id = "about", .heading = "The run", .folded = true};
  const auto fact = [&](std::string name, std::string value) {
    if (!value.empty()) section.lead.push_back({.text = std::move(value), .label = std::move(name) + ": "});
  };
  const std::map<std::string_view, std::pair<std::string, std::string>> own = {
      {"source_text", {"Source", SourceTitle(report)}},
      {"attributed_text", {"Attributed", AttributedText(report)}},
      {"counted_text",
       {"With counters", report.total.sums.time_ns() > 0 ? Percent(report.attribution.counters_share) + " of GPU time"
                                                         : std::string()}},
      {"policy_text", {"Precision policy", PolicyText(report.run.policy)}}};
  for (const ListedFact& listed : FactsIn(Schema::kPage)) {
    if (listed.fact == nullptr) {
      const auto& [name, text] = own.at(listed.name);
      fact(name, text);
      continue;
    }
    const ColumnInfo& info = listed.fact->info;
    const Cell cell = listed.ValueIn(report);
    if (!std::holds_alternative<std::string>(cell) && !(NumberIn(cell) > 0)) continue;
    const auto* const count = std::get_if<uint64_t>(&cell);
    fact(std::string(info.title.empty() ? info.name : info.title), count != nullptr && info.kind == Kind::kCount
                                                                       ? Grouped(*count)
                                                                       : TableText(info, {.unit = info.unit}, cell));
  }
  for (const ModelInfo& model : report.process.models) {
    fact("Model " + model.class_name,
         Grouped(model.parameters) + " parameters, " + WithPrefix(static_cast<double>(model.parameter_bytes), "B"));
  }
  fact("Processes", Grouped(report.process.count));
  for (const ProcessInfo& process : report.process.list) fact("Process", ProcessText(process));
  for (const trace::Drop& drop : report.kept.drop) fact("Dropped", drop.what + ": " + Grouped(drop.count));
  return section;
}

Section GlossarySection() {
  Section section{.id = "words", .heading = "Words", .folded = true};
  for (const GlossaryEntry& entry : Glossary()) {
    section.lead.push_back({.text = std::string(entry.meaning), .label = std::string(entry.word) + ": "});
  }
  return section;
}

// Adds the sections of one topic, run by run; `sections_of(i)` makes those of the i-th report. Where there are
// several runs, the headings say which it is.
template <typename SectionsOf>
void AddTopic(const std::vector<Report>& reports, std::string_view tab, std::string_view heading,
              const SectionsOf& sections_of, Document* document) {
  bool first = true;
  for (size_t i = 0; i < reports.size(); ++i) {
    std::vector<Section> sections = sections_of(i);
    for (size_t s = 0; s < sections.size(); ++s) {
      Section& section = sections[s];
      if (s == 0) {
        if (!heading.empty()) section.heading = heading;
        if (reports.size() > 1 && !section.heading.empty()) {
          section.heading += ": " + ReportTitle(reports[i]) + (reports[i].steps.validation ? ", validation" : "");
        }
        section.tab = first ? tab : std::string_view();
      }
      section.id += i > 0 && !section.id.empty() ? "-" + std::to_string(i + 1) : "";
      document->sections.push_back(std::move(section));
    }
    first = first && sections.empty();
  }
}

void AddTopics(const OwnedPage& owned, Document* document) {
  using Sections = std::vector<Section>;
  const std::vector<Report>& reports = owned.reports;
  const auto one_if = [](bool there, auto make) {
    Sections sections;
    if (there) sections.push_back(make());
    return sections;
  };
  const auto topic = [&](std::string_view tab, std::string_view heading, const auto& sections_of) {
    AddTopic(reports, tab, heading, sections_of, document);
  };
  topic("Summary", "", [&](size_t i) { return Sections{OpeningSection(reports[i])}; });
  topic("", "Alarms and notes", [&](size_t i) {
    std::vector<Sentence> problems = ProblemsOf(reports[i]);
    return one_if(!problems.empty(), [&] { return Section{.id = "problems", .lead = std::move(problems)}; });
  });
  document->sections.push_back(
      {.id = "layers", .tab = "Layers", .figures = ReportFigures(reports), .linked = LinkedRows(reports)});
  topic("Phases", "Where a step goes",
        [&](size_t i) { return one_if(!reports[i].phases.empty(), [&] { return PhaseSection(reports[i]); }); });
  topic("Advice", "What to change, and why",
        [&](size_t i) { return Sections{AdviceSection(reports[i], /*all=*/false)}; });
  if (!owned.waits.empty()) {
    topic("Waits", "What a step waits for, by the clock",
          [&](size_t i) { return owned.waits[i].all.steps > 0 ? WaitSections(owned.waits[i]) : Sections(); });
    topic("Ranks", "Steps by rank, by the clock", [&](size_t i) {
      return one_if(owned.waits[i].ranks.size() > 1, [&] { return RankSection(owned.waits[i]); });
    });
    topic("Timeline", "A step as the GPU saw it", [&](size_t i) {
      return one_if(owned.timelines[i].known(), [&] { return TimelineSection(owned.timelines[i]); });
    });
    topic("Memory", "Memory at the peak, by where it was allocated",
          [&](size_t i) { return MemorySections(owned.memory[i]); });
    topic("Stacks", "What is in no layer, by native stack", [&](size_t i) {
      const bool any = std::any_of(owned.stacks[i].begin(), owned.stacks[i].end(),
                                   [](const StackRow& row) { return row.stack != nullptr; });
      return one_if(any, [&] { return StackSection(owned.stacks[i], reports[i].steps.count); });
    });
  }
  topic("About", "What these numbers rest on",
        [&](size_t i) { return Sections{{.id = "facts", .lead = FactsOf(reports[i]), .folded = true}}; });
  topic("", "Roofs",
        [&](size_t i) { return one_if(!reports[i].roofs.empty(), [&] { return RoofSection(reports[i]); }); });
  topic("", "The run", [&](size_t i) { return Sections{RunSection(reports[i])}; });
  document->sections.push_back(GlossarySection());
}

}  // namespace

Document PageDocument(std::vector<Report> reports, const ReportLook& look, const std::vector<const Run*>& runs) {
  const auto owner = std::make_shared<OwnedPage>();
  const bool runs_known = runs.size() == reports.size();
  // What trains comes first, as in a terminal.
  std::vector<size_t> order;
  for (size_t i = 0; i < reports.size(); ++i) {
    if (reports[i].steps.validation || !look.validation) order.push_back(i);
  }
  std::stable_partition(order.begin(), order.end(), [&](size_t i) { return !reports[i].steps.validation; });
  for (const size_t i : order) {
    Report& report = reports[i];
    if (look.sort != nullptr) SortRows(*look.sort, &report);
    std::optional<Report> grouped = GroupedForPage(report);
    owner->reports.push_back(grouped ? std::move(*grouped) : std::move(report));
    if (!runs_known) continue;
    owner->waits.push_back(FoldWaits(*runs[i]));
    owner->memory.push_back(FoldMemory(*runs[i]));
    owner->timelines.push_back(TimelineOf(*runs[i]));
    owner->stacks.push_back(FoldStacks(*runs[i]));
  }
  Document document{.title = DocumentTitle("rfinject report", owner->reports), .owner = owner};
  for (const Report& report : owner->reports) {
    for (Check& check : ChecksOf(report)) document.checks.push_back(std::move(check));
  }
  document.nothing = NothingText(owner->reports);
  AddTopics(*owner, &document);
  return document;
}

}  // namespace rfinject::cli
