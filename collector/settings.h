// File: settings.h
//
// The settings are what the user asked for, read once from RFINJECT_* in the environment. The command sets these
// variables; another launcher can set them, too (`rfinject env` prints them). `rfinject attach` hands them to a
// process that runs (SetSettings).
#ifndef RFINJECT_COLLECTOR_SETTINGS_H_
#define RFINJECT_COLLECTOR_SETTINGS_H_

#include <cstdint>
#include <string>

namespace rfinject {

struct Settings {
  std::string output;           // RFINJECT_OUTPUT: folder (ends in '/') or file pattern with %h %p %r %q{ENV} %%
  std::string estimate;         // RFINJECT_ESTIMATE: a row of gpus.csv; empty: measure
  std::string estimate_on;      // RFINJECT_ESTIMATE_ON: cpu|virtual-gpu|auto, where the program's operators run
  std::string values;           // RFINJECT_VALUES: small|all|none, what is computed on a virtual GPU
  uint64_t virtual_gpus = 0;    // RFINJECT_VIRTUAL_GPUS: how many there are; 0: one, or one a process of torchrun
  uint64_t skip = 0;            // RFINJECT_SKIP: steps before the window
  uint64_t steps = 0;           // RFINJECT_STEPS: steps in the window; 0: all
  bool kill = false;            // RFINJECT_KILL=1: end the program politely when the window closes
  bool start_stopped = false;   // RFINJECT_START_STOPPED=1: measure nothing until Recorder::RequestMeasuring
  double overhead_percent = 1;  // RFINJECT_OVERHEAD
  uint64_t max_size_mb = 256;   // RFINJECT_MAX_SIZE: of a trace, in MB (10^6 bytes); 0: any size
  std::string ranks;            // RFINJECT_RANKS: those that measure, "0,3"; empty or "all": every one
  int verbosity = 0;            // RFINJECT_LOG: quiet -1, normal 0, verbose 1, debug 2, calls 3
  std::string metrics;          // RFINJECT_METRICS: extra hardware metrics, comma separated
  std::string tier;             // RFINJECT_TIER: force a lower tier (A…F), for tests and for trouble
  std::string mode;             // RFINJECT_MODE: auto|range|user|legacy|pm|times|none, the hardware source to use
  // RFINJECT_OPERATORS: auto|slices|all|none, what is heard of a measured run's operators: what is due, a slice or
  // all of every step, nothing
  std::string operators;
  bool disabled = false;  // RFINJECT_DISABLE=1: do nothing at all
  // RFINJECT_LATEST=1: the output folder is this run's alone, and the link `latest` beside it is to name it.
  bool link_latest = false;
  // RFINJECT_LAUNCHED: the process that `rfinject` became, which ends with a line about what it has measured; 0:
  // another launcher started it.
  uint64_t launched = 0;
  std::string change;    // RFINJECT_TRY: a file of Python that runs when torch is imported (injector/python/change.h)
  std::string job;       // RFINJECT_JOB: what ties the processes of one run together (process_facts.h)
  uint64_t seconds = 0;  // RFINJECT_SECONDS: how long a process that was attached to is measured; 0: no end
  bool attached = false;  // SetSettings has given them to a process that ran already
};

// Whether so few steps are wanted that the run is made for measuring: it may wait for what a longer one has in
// passing.
inline constexpr uint64_t kShortRun = 1000;  // steps
inline bool IsShortRun(const Settings& settings) noexcept {
  return settings.steps != 0 && settings.steps <= kShortRun;
}

// Parses the environment at the first call, and returns the same object afterwards. Bad values keep the default and
// are kept in `SettingsErrors`, one line each, for the trace, and so are unknown RFINJECT_* names.
const Settings& GetSettings() noexcept;
const std::string& SettingsErrors() noexcept;

// Has GetSettings return from now on what these entries say, in place of the environment: of a process that is
// attached to. Called while nothing of this library runs but the caller. Returns false where memory ran out; nothing
// has changed then.
bool SetSettings(const char* const* entries) noexcept;

// What GetSettings calls, and tests more than once. `environment` is a null-terminated array of "NAME=value", as
// environ is. A relative output is made absolute from the current folder. What is wrong is appended to `*errors`, one
// line each. May throw std::bad_alloc.
Settings ParseSettings(const char* const* environment, std::string* errors);

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_SETTINGS_H_
