#include "cli/report/facts/fact.h"

#include <algorithm>
#include <vector>

#include "cli/report/facts/mfu.h"
#include "cli/report/facts/run.h"
#include "cli/report/report.h"

namespace rfinject::cli {
namespace {

class Table {
 public:
  template <typename Part>
  void Add(std::span<const FactOf<Part>> facts, Part Report::*part) {
    for (const FactOf<Part>& fact : facts) {
      Add(fact.info, fact.lacking, [part, value = fact.value](const Report& report) { return value(report.*part); });
    }
  }
  void Add(std::span<const FactOf<Report>> facts) {
    for (const FactOf<Report>& fact : facts) Add(fact.info, fact.lacking, fact.value);
  }
  void Add(const ColumnInfo& info, std::string_view lacking, std::function<Cell(const Report& report)> value) {
    facts_.push_back({info, lacking, std::move(value)});
  }
  const std::vector<RunFact>& facts() const { return facts_; }

 private:
  std::vector<RunFact> facts_;
};

}  // namespace

std::span<const RunFact> AllRunFacts() {
  static const auto* const kTable = [] {
    auto* const table = new Table;
    table->Add(RunFacts());
    table->Add(ProcessFacts(), &Report::process);
    table->Add(DeviceFacts(), &Report::device);
    table->Add(StepFacts(), &Report::steps);
    table->Add(ClockFacts(), &Report::clock);
    table->Add(QueueFacts(), &Report::queue);
    table->Add(WaitFacts(), &Report::waits);
    table->Add(SlowFacts(), &Report::slow);
    table->Add(MemoryFacts(), &Report::memory);
    table->Add(AttributionFacts(), &Report::attribution);
    table->Add(SamplingFacts(), &Report::sampling);
    table->Add(WorkFacts());
    table->Add(MfuFacts());
    for (const FactInfo& fact : AllFacts()) {
      const std::string_view unit = fact.name.ends_with("_ns") ? "ns" : fact.name.ends_with("_bytes") ? "B" : "";
      table->Add(UnitColumn(fact.name, unit, fact.meaning), fact.lacking,
                 [id = fact.id](const Report& report) { return KnownCell(report.advice.facts[id]); });
    }
    return table;
  }();
  return kTable->facts();
}

const RunFact* FindRunFact(std::string_view name) {
  const std::span<const RunFact> all = AllRunFacts();
  const auto found = std::ranges::find(all, name, [](const RunFact& fact) { return fact.info.name; });
  return found == all.end() ? nullptr : &*found;
}

double NumberOf(const Report& report, std::string_view name) { return NumberIn(FindRunFact(name)->value(report)); }

std::string TextOf(const Report& report, std::string_view name) {
  const Cell cell = FindRunFact(name)->value(report);
  const auto* text = std::get_if<std::string>(&cell);
  return text != nullptr ? *text : std::string();
}

}  // namespace rfinject::cli
