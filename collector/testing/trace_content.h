// File: trace_content.h
//
// Reads a trace for the collector's own tests: frames by proto/wire/framing.h, chunks by libprotobuf. It is small and
// strict where the command's reader is forgiving: whatever breaks a rule of FORMAT.md becomes an error text.
#ifndef RFINJECT_COLLECTOR_TESTING_TRACE_CONTENT_H_
#define RFINJECT_COLLECTOR_TESTING_TRACE_CONTENT_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "proto/rfinject/v1/trace.pb.h"

namespace rfinject::testing {

struct MetricTotal {
  uint64_t n = 0;
  unsigned __int128 sum = 0;
  unsigned __int128 sum_squares = 0;
  uint64_t min = UINT64_MAX;
  uint64_t max = 0;
  friend bool operator==(const MetricTotal&, const MetricTotal&) = default;
};

struct KeyTotal {
  v1::LaunchKey key;
  uint64_t launches = 0;
  std::map<std::string, MetricTotal> metrics;  // by metric name
};

struct TraceContent {
  std::string error;          // the first broken rule; empty if there is none
  size_t whole_bytes = 0;     // header and whole frames
  size_t trailing_bytes = 0;  // after them
  std::vector<v1::Chunk> chunks;

  v1::Run run;  // merged
  std::map<uint32_t, std::string> names;
  std::map<uint32_t, v1::Model> models;
  std::map<uint32_t, v1::Layer> layers;
  std::map<uint32_t, v1::Metric> metrics;
  std::map<uint32_t, KeyTotal> keys;
  std::vector<v1::Step> steps;
  std::vector<v1::Diagnostic> diagnostics;
  std::map<std::string, uint64_t> drops;
  bool has_end = false;
  v1::End end;

  uint64_t Launches() const;
  // Sum over all keys.
  MetricTotal Total(std::string_view metric) const;
  const v1::Diagnostic* FindDiagnostic(std::string_view id) const;
  size_t MeasuredSteps() const;
};

TraceContent ParseTrace(std::string_view bytes);
TraceContent ReadTrace(const std::string& path);
std::string ReadFile(const std::string& path);

// A folder of its own below the system's for temporary files; removed, with what is in it, by the destructor.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }
  // Names of what is in the folder, sorted.
  std::vector<std::string> List() const;

 private:
  std::string path_;
};

}  // namespace rfinject::testing

#endif  // RFINJECT_COLLECTOR_TESTING_TRACE_CONTENT_H_
