#include "cli/report/facts/schemas.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "cli/report/advice/facts.h"

namespace rfinject::cli {
namespace {

// By Schema: the names of its columns or members, in their order; "older=fact" where a fact has another name there.
// "?" behind it: left out where it is not known; "!": 0 there. What is no fact is the output's own.
constexpr std::array<std::string_view, 6> kSchemas = {
    "samples step_wall_time_ns=step_wall_ns step_gpu_time_ns=step_gpu_ns! optimizer_step_wall_time_p50_ns "
    "optimizer_step_wall_time_p95_ns optimizer_step_gpu_busy_ns optimizer_step_data_wait_ns optimizer_step_gpu_wait_ns "
    "gpu_waits_for? steps_with_gaps_share? "
    "step_host_time_ns=host_time_per_step_ns? step_time_ns? step_bound? step_gpu_waits_share? step_host_of=host_time_of? "
    "shortest_launch_ns! launch_floor_ns launch_interval_ns launch_interval_of own_calibration? memory_peak_bytes "
    "pm_sampling attributed_share unattributed_launches counters_share backward_model_flop_per_forward_model_flop "
    "backward_flop_per_forward_flop backward_time_per_forward_time theory",

    "source model gpu policy mode=trains steps samples batch_size short_mode parameters parameter_bytes "
    "model_flop_per_step flop_per_step dram_bytes_per_step oi_flop_per_byte gpu_time_per_step_ns host_time_per_step_ns "
    "step_time_ns step_bound host_time_of wall_time_per_step_ns=step_wall_ns samples_per_s performance_flop_per_s "
    "attainable_flop_per_s attainable_share least_compute_time_per_step_ns least_memory_time_per_step_ns "
    "least_time_per_step_ns memory_peak_bytes forward_flop_per_step forward_dram_bytes_per_step "
    "forward_time_per_step_ns forward_time_share forward_least_time_per_step_ns forward_oi_flop_per_byte "
    "forward_attainable_share backward_flop_per_step backward_dram_bytes_per_step backward_time_per_step_ns "
    "optimizer_time_per_step_ns backward_flop_per_forward_flop backward_time_per_forward_time samples_per_s_over bound "
    "started command alarms alarm_ids",

    "started start_unix_ns source gpu model ranks processes steps gpu_time_per_step_ns=step_gpu_ns "
    "wall_time_per_step_ns=step_wall_ns command path",

    "job path trace_id started_unix_ns command host pid rank world_size processes torch_version source network=model gpu "
    "mode batch_size steps samples step_wall_ns step_gpu_ns slow_steps attributed_share memory_peak_bytes unfinished",

    "started_unix_ns steps samples step_wall_ns step_gpu_ns alarms",

    "source_text device roofs_of sm_clock_hz collector tier steps samples batch_size step_wall_ns step_gpu_ns "
    "memory_peak_bytes attributed_text counted_text policy_text"};

ListedFact Parsed(std::string_view word, std::set<std::string_view>* names) {
  ListedFact listed;
  if (word.ends_with('?') || word.ends_with('!')) {
    listed.unknown = word.back() == '?' ? Unknown::kLeftOut : Unknown::kZero;
    word.remove_suffix(1);
  }
  const size_t equals = std::min(word.find('='), word.size());
  listed.name = word.substr(0, equals);
  const std::string_view fact = equals < word.size() ? word.substr(equals + 1) : word;
  listed.fact = FindRunFact(fact);
  names->insert(fact);
  return listed;
}

using Lists = std::array<std::vector<ListedFact>, kSchemas.size()>;

Lists MakeLists() {
  Lists lists;
  std::set<std::string_view> in_some;
  for (size_t i = 0; i < kSchemas.size(); ++i) {
    const absl::string_view names(kSchemas[i].data(), kSchemas[i].size());
    for (const absl::string_view word : absl::StrSplit(names, ' ')) {
      lists[i].push_back(Parsed({word.data(), word.size()}, &in_some));
    }
  }
  for (const RunFact& fact : AllRunFacts()) {
    // A member of an object is where that is.
    if (in_some.contains(fact.info.name.substr(0, fact.info.name.find('.'))) || FactNamed(fact.info.name)) continue;
    for (std::vector<ListedFact>& list : lists) list.push_back({fact.info.name, &fact, Unknown::kLeftOut});
  }
  return lists;
}

}  // namespace

Cell ListedFact::ValueIn(const Report& report) const {
  Cell cell = fact->value(report);
  return unknown == Unknown::kZero && std::holds_alternative<std::monostate>(cell) ? Cell{0.0} : cell;
}

ColumnInfo ListedFact::info() const {
  ColumnInfo info = fact->info;
  info.name = name;
  return info;
}

std::span<const ListedFact> FactsIn(Schema schema) {
  static const auto* const kLists = new Lists(MakeLists());
  return (*kLists)[static_cast<size_t>(schema)];
}

RowSet FactRows(Schema schema, const RowSet& own, const std::function<const Report&(size_t row)>& report_of) {
  RowSet rows{.size = own.size, .columns = {}};
  for (const ListedFact& listed : FactsIn(schema)) {
    if (const Column* const column = own.Find(listed.name)) {
      rows.columns.push_back(*column);
      continue;
    }
    rows.columns.push_back({listed.info(), [&listed, report_of](size_t row) {
                              Cell cell = listed.ValueIn(report_of(row));
                              const auto* const count = std::get_if<uint64_t>(&cell);
                              // An amount is a number in tables, even where it is one of whole bytes.
                              const bool amount = count != nullptr && listed.fact->info.kind == Kind::kUnit;
                              return amount ? Cell{static_cast<double>(*count)} : cell;
                            }});
  }
  return rows;
}

}  // namespace rfinject::cli
