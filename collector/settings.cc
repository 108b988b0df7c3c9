#include "collector/settings.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <string_view>
#include <utility>

#include "collector/output_path.h"

namespace rfinject {
namespace {

constexpr std::string_view kPrefix = "RFINJECT_";
constexpr std::string_view kDefaultFolder = "rfinject-out/";

struct Parsed {
  Settings settings;
  std::string errors;
};

void Complain(std::string* errors, std::string_view name, std::string_view value, std::string_view wanted) {
  if (!errors->empty()) *errors += '\n';
  errors->append(name).append("=").append(value).append(": ").append(wanted);
}

// Takes decimal digits only: strtoull alone would take "-1" and " 1".
bool ParseCount(const std::string& text, uint64_t* value) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos) return false;
  errno = 0;
  const unsigned long long number = std::strtoull(text.c_str(), nullptr, 10);
  if (errno != 0) return false;
  *value = number;
  return true;
}

// Takes "all", or numbers with commas between them.
bool ParseRanks(const std::string& text, std::string* value) {
  uint64_t rank = 0;
  for (size_t begin = 0; text != "all" && begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (!ParseCount(text.substr(begin, end - begin), &rank) || rank > UINT32_MAX) return false;
    begin = end + 1;
  }
  *value = text;
  return true;
}

bool ParseFlag(const std::string& text, bool* value) {
  if (text != "0" && text != "1" && !text.empty()) return false;
  *value = text == "1";
  return true;
}

// Takes digits and a point; strtod would follow the program's locale.
bool ParsePercent(const std::string& text, double* value) {
  double number = 0;
  double digit = 0;
  bool any = false;
  for (char c : text) {
    if (c == '.' && digit == 0) {
      digit = 1;
    } else if (c >= '0' && c <= '9') {
      any = true;
      if (digit == 0) {
        number = number * 10 + (c - '0');
      } else {
        digit /= 10;
        number += digit * (c - '0');
      }
    } else {
      return false;
    }
  }
  if (!any || number > 100) return false;
  *value = number;
  return true;
}

bool ParseOneOf(const std::string& text, std::initializer_list<std::string_view> words, std::string* value) {
  for (std::string_view word : words) {
    if (text == word) {
      *value = text;
      return true;
    }
  }
  return text.empty();
}

bool ParseLog(const std::string& text, int* value) {
  constexpr std::array<std::string_view, 5> kNames = {"quiet", "normal", "verbose", "debug", "calls"};
  for (size_t i = 0; i < kNames.size(); ++i) {
    const int level = static_cast<int>(i) - 1;
    if (text == kNames[i] || text == std::to_string(level)) {
      *value = level;
      return true;
    }
  }
  return text.empty();
}

// Makes a path absolute: the user means it from the folder where the program was started, and the program may be in
// another one when the trace begins.
std::string Absolute(const std::string& path) {
  if (!path.empty() && path[0] == '/') return path;
  char here[4096];
  if (getcwd(here, sizeof here) == nullptr || here[0] != '/') return path;
  std::string result = EscapeOutput(here);
  if (result.back() != '/') result += '/';
  return result + path;
}

Parsed& Get() noexcept {
  // Never destroyed: exit handlers read the settings.
  alignas(Parsed) static unsigned char storage[sizeof(Parsed)];
  static Parsed* const parsed = [] {
    auto* made = new (storage) Parsed;
    try {
      made->settings = ParseSettings(environ, &made->errors);
    } catch (...) {
      made->settings.disabled = true;
    }
    return made;
  }();
  return *parsed;
}

}  // namespace

Settings ParseSettings(const char* const* environment, std::string* errors) {
  Settings settings;
  std::string output;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    const size_t equals = entry.find('=');
    if (!entry.starts_with(kPrefix) || equals == std::string_view::npos) continue;
    const std::string_view name = entry.substr(0, equals);
    const std::string_view word = name.substr(kPrefix.size());
    const std::string value(entry.substr(equals + 1));
    const auto check = [&](bool good, std::string_view wanted) {
      if (!good) Complain(errors, name, value, wanted);
    };
    // An empty value is an unset one.
    if (word == "OUTPUT") {
      output = value;
    } else if (word == "ESTIMATE") {
      settings.estimate = value;
    } else if (word == "ESTIMATE_ON") {
      check(ParseOneOf(value, {"auto", "cpu", "virtual-gpu"}, &settings.estimate_on),
            "one of auto, cpu, virtual-gpu is wanted");
    } else if (word == "VALUES") {
      check(ParseOneOf(value, {"small", "all", "none"}, &settings.values), "one of small, all, none is wanted");
    } else if (word == "VIRTUAL_GPUS") {
      check(value.empty() || ParseCount(value, &settings.virtual_gpus), "a number of GPUs is wanted");
    } else if (word == "SKIP") {
      check(value.empty() || ParseCount(value, &settings.skip), "a number of steps is wanted");
    } else if (word == "STEPS") {
      check(value.empty() || ParseCount(value, &settings.steps), "a number of steps is wanted (0: all)");
    } else if (word == "KILL") {
      check(ParseFlag(value, &settings.kill), "0 or 1 is wanted");
    } else if (word == "START_STOPPED") {
      check(ParseFlag(value, &settings.start_stopped), "0 or 1 is wanted");
    } else if (word == "OVERHEAD") {
      check(value.empty() || ParsePercent(value, &settings.overhead_percent),
            "a percentage is wanted, as in 1 or 0.5");
    } else if (word == "MAX_SIZE") {
      check(value.empty() || ParseCount(value, &settings.max_size_mb), "a number of MB is wanted (0: any size)");
    } else if (word == "RANKS") {
      check(value.empty() || ParseRanks(value, &settings.ranks), "all, or ranks like 0,3 are wanted");
    } else if (word == "LOG") {
      check(ParseLog(value, &settings.verbosity), "one of quiet, normal, verbose, debug, calls is wanted");
    } else if (word == "METRICS") {
      settings.metrics = value;
    } else if (word == "TIER") {
      check(ParseOneOf(value, {"A", "B", "C", "D", "E", "F"}, &settings.tier), "a letter from A to F is wanted");
    } else if (word == "MODE") {
      check(ParseOneOf(value, {"auto", "range", "user", "legacy", "pm", "times", "none"}, &settings.mode),
            "one of auto, range, user, legacy, pm, times, none is wanted");
    } else if (word == "OPERATORS") {
      check(ParseOneOf(value, {"auto", "slices", "all", "none"}, &settings.operators),
            "one of auto, slices, all, none is wanted");
    } else if (word == "LATEST") {
      check(ParseFlag(value, &settings.link_latest), "0 or 1 is wanted");
    } else if (word == "LAUNCHED") {
      check(value.empty() || ParseCount(value, &settings.launched), "a process id is wanted");
    } else if (word == "TRY") {
      settings.change = value;
    } else if (word == "JOB") {
      settings.job = value;
    } else if (word == "SECONDS") {
      check(value.empty() || ParseCount(value, &settings.seconds), "a number of seconds is wanted (0: no end)");
    } else if (word == "LIBRARY" || word == "COMMAND" || word == "CONFIG") {
      // These variables are for the command and the Python package: they say where the library, the command and a
      // file with defaults lie.
    } else if (word == "DISABLE") {
      check(ParseFlag(value, &settings.disabled), "0 or 1 is wanted");
    } else {
      Complain(errors, name, value, "no such setting");
    }
  }
  settings.output = Absolute(output.empty() ? std::string(kDefaultFolder) : output);
  return settings;
}

const Settings& GetSettings() noexcept { return Get().settings; }
const std::string& SettingsErrors() noexcept { return Get().errors; }

bool SetSettings(const char* const* entries) noexcept try {
  Parsed given;
  given.settings = ParseSettings(entries, &given.errors);
  given.settings.attached = true;
  // The step that runs was not seen to begin.
  if (given.settings.skip != UINT64_MAX) ++given.settings.skip;
  Get() = std::move(given);
  return true;
} catch (...) {
  return false;
}

}  // namespace rfinject
