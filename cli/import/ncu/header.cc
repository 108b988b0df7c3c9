#include "cli/import/ncu/header.h"

#include <algorithm>

#include "gpus/counters.h"

namespace rfinject::cli {
namespace {

struct ColumnName {
  std::string_view name;
  size_t NcuColumns::*column;
};
constexpr ColumnName kColumnNames[] = {
    {"ID", &NcuColumns::id},
    {"Process ID", &NcuColumns::process_id},
    {"Process Name", &NcuColumns::process_name},
    {"Kernel Name", &NcuColumns::kernel},
    {"Block Size", &NcuColumns::block},
    {"Grid Size", &NcuColumns::grid},
    {"Device", &NcuColumns::device},
    {"CC", &NcuColumns::cc},
    {kBoardNameAttribute, &NcuColumns::board},
    {kBoardMemoryAttribute, &NcuColumns::memory},
    {kBoardSmsAttribute, &NcuColumns::sms},
    {"Section Name", &NcuColumns::section},
    {"Metric Name", &NcuColumns::metric},
    {"Metric Unit", &NcuColumns::unit},
    {"Metric Value", &NcuColumns::value},
};

}  // namespace

bool NcuColumns::regular() const {
  return !wide() && id == 0 && first_of_metric() > 0 && unit == metric + 1 && value == metric + 2 &&
         count == metric + 3 && (section == kNone || section + 1 == metric);
}

NcuColumns ReadNcuHeader(const std::vector<std::string_view>& fields) {
  NcuColumns columns;
  if (std::find(fields.begin(), fields.end(), "ID") == fields.end()) return columns;
  for (size_t i = 0; i < fields.size(); ++i) {
    for (const auto& [name, column] : kColumnNames) {
      if (fields[i] != name || columns.*column != NcuColumns::kNone) continue;
      columns.*column = i;
      columns.last = i;
    }
    // "thread Domain:Push/Pop_Range:PL_Type:…": the rest of the name varies.
    if (fields[i].find("Push/Pop_Range") != std::string_view::npos) columns.push_pop = columns.last = i;
    if (fields[i].find("Start/Stop_Range") != std::string_view::npos) columns.start_stop = columns.last = i;
  }
  const bool table = columns.kernel != NcuColumns::kNone && columns.id != NcuColumns::kNone;
  const bool half_long = (columns.metric == NcuColumns::kNone) != (columns.value == NcuColumns::kNone);
  columns.count = table && !half_long ? fields.size() : 0;
  return columns;
}

}  // namespace rfinject::cli
