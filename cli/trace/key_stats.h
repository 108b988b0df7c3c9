// File: key_stats.h
//
// Reads the KeyStats records of a trace where they lie. They are most of a trace, and making a message of protobuf
// for each of their metrics would take most of the time of reading.
//
//   KeyStatsReader reader(record.bytes);
//   for (MetricRecord metric; reader.Next(&metric);) …
//   if (!reader.ok()) …                                    what is damaged, as FieldCursor says it
//   key = reader.key();                                    known at the end
#ifndef RFINJECT_CLI_TRACE_KEY_STATS_H_
#define RFINJECT_CLI_TRACE_KEY_STATS_H_

#include <array>
#include <cstdint>

#include "cli/trace/fields.h"
#include "proto/rfinject/v1/trace.pb.h"

namespace rfinject::cli {

// MetricStats of the schema.
struct MetricRecord {
  // By the number of the field; what the schema does not know falls into 0.
  std::array<uint64_t, 10> value{};

  uint32_t metric() const { return static_cast<uint32_t>(value[v1::MetricStats::kMetricFieldNumber]); }
  uint64_t n() const { return value[v1::MetricStats::kNFieldNumber]; }
  uint64_t sum() const { return value[v1::MetricStats::kSumFieldNumber]; }
  uint64_t sum_high() const { return value[v1::MetricStats::kSumHighFieldNumber]; }
  uint64_t sum_squares() const { return value[v1::MetricStats::kSumSquaresFieldNumber]; }
  uint64_t sum_squares_high() const { return value[v1::MetricStats::kSumSquaresHighFieldNumber]; }
  uint64_t min() const { return value[v1::MetricStats::kMinFieldNumber]; }
  uint64_t max() const { return value[v1::MetricStats::kMaxFieldNumber]; }
  uint64_t shared_sums() const { return value[v1::MetricStats::kSharedSumsFieldNumber]; }
};

class KeyStatsReader {
 public:
  explicit KeyStatsReader(const Field& record) : cursor_(record) {}

  // The next metric; false at the end and at damage. What the schema does not know is passed over.
  bool Next(MetricRecord* metric) {
    for (Field field; cursor_.Next(&field);) {
      if (field.type == WireType::kVarint) {
        if (field.number == v1::KeyStats::kKeyFieldNumber) key_ = static_cast<uint32_t>(field.value);
        if (field.number == v1::KeyStats::kLaunchesFieldNumber) launches_ = field.value;
      } else if (field.type == WireType::kBytes && field.number == v1::KeyStats::kMetricFieldNumber) {
        *metric = MetricRecord{};
        return ReadMetric(field, metric);
      }
    }
    return false;
  }

  bool ok() const { return cursor_.ok() && metric_error_ == nullptr; }
  const char* error() const { return metric_error_ != nullptr ? metric_error_ : cursor_.error(); }
  uint64_t error_offset() const { return metric_error_ != nullptr ? metric_error_offset_ : cursor_.error_offset(); }
  uint32_t key() const { return key_; }
  uint64_t launches() const { return launches_; }

 private:
  bool ReadMetric(const Field& record, MetricRecord* metric) {
    if (ReadNumbers(record.bytes.data(), record.bytes.data() + record.bytes.size(), metric)) return true;
    *metric = MetricRecord{};
    FieldCursor cursor(record);
    for (Field field; cursor.Next(&field);) {
      if (field.type == WireType::kVarint) Set(field.number, field.value, metric);
    }
    if (cursor.ok()) return true;
    metric_error_ = cursor.error();
    metric_error_offset_ = cursor.error_offset();
    return false;
  }

  static void Set(uint32_t number, uint64_t value, MetricRecord* metric) {
    metric->value[number < metric->value.size() ? number : 0] = value;
  }

  // A message of numbers with tags of one byte, which is what is written. False where it is something else.
  static bool ReadNumbers(const uint8_t* at, const uint8_t* end, MetricRecord* metric) {
    while (at != end) {
      const uint8_t tag = *at++;
      uint64_t value = 0;
      if ((tag & 0x87) != 0 || tag == 0) return false;
      at = ParseVarint(at, end, &value);
      if (at == nullptr) return false;
      Set(tag >> 3, value, metric);
    }
    return true;
  }

  FieldCursor cursor_;
  uint32_t key_ = 0;
  uint64_t launches_ = 0;
  const char* metric_error_ = nullptr;
  uint64_t metric_error_offset_ = 0;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_TRACE_KEY_STATS_H_
