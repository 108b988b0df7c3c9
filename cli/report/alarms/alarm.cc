#include "cli/report/alarms/alarm.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "cli/report/alarms/findings.h"

namespace rfinject::cli {

std::span<const AlarmKind> AlarmKinds() { return kAlarmKinds; }

std::string AlarmRange() { return std::string(kAlarmKinds.front().id) + " to " + std::string(kAlarmKinds.back().id); }

bool ParseAlarmIds(std::string_view text, std::vector<std::string>* ids) {
  ids->clear();
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    std::string id(text.substr(0, comma));
    for (char& c : id) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    if (!IsAlarm(id)) return false;
    ids->push_back(std::move(id));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return true;
}

}  // namespace rfinject::cli
