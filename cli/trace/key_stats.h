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
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

#include "cli/trace/fields.h"
#include "proto/rfinject/v1/trace.pb.h"
#include "proto/rfinject/v1/trace.schema.h"

namespace rfinject::cli {

// KeyStatsReader fills it: to be cleared before that costs a tenth of reading.
using MetricRecord = trace::MetricStatsNumbers;

class KeyStatsReader {
 public:
  explicit KeyStatsReader(const Field& record)
      : begin_(record.bytes.data()), at_(begin_), end_(begin_ + record.bytes.size()), offset_(record.bytes_offset) {}

  // The next metric; false at the end and at damage. What the schema does not know is passed over.
  bool Next(MetricRecord* metric) {
    while (at_ != end_ && ok()) {
      const std::ptrdiff_t left = end_ - at_;
      // What is written has tags and lengths of one byte.
      if (*at_ == kMetricTag && left >= 2 && at_[1] < 0x80 && at_[1] <= left - 2) {
        const uint8_t* const numbers = at_ + 2;
        at_ = numbers + at_[1];
        if (ReadNumbers(numbers, at_, metric)) return true;
        Field field;
        field.bytes = {numbers, at_};
        field.bytes_offset = offset_ + static_cast<uint64_t>(numbers - begin_);
        return ReadMetric(field, metric);
      }
      if (*at_ == kKeyTag || *at_ == kLaunchesTag) {
        uint64_t number = 0;
        const uint8_t* const next = ParseVarint(at_ + 1, end_, &number);
        if (next != nullptr) {
          if (*at_ == kKeyTag) key_ = static_cast<uint32_t>(number);
          if (*at_ == kLaunchesTag) launches_ = number;
          at_ = next;
          continue;
        }
      }
      Field field;
      FieldCursor cursor({at_, end_}, offset_ + static_cast<uint64_t>(at_ - begin_));
      if (!cursor.Next(&field)) {
        Fail(cursor);
        return false;
      }
      at_ = cursor.at();
      if (field.type == WireType::kVarint) {
        if (field.number == v1::KeyStats::kKeyFieldNumber) key_ = static_cast<uint32_t>(field.value);
        if (field.number == v1::KeyStats::kLaunchesFieldNumber) launches_ = field.value;
      } else if (field.type == WireType::kBytes && field.number == v1::KeyStats::kMetricFieldNumber) {
        return ReadMetric(field, metric);
      }
    }
    return false;
  }

  bool ok() const { return error_ == nullptr; }
  const char* error() const { return error_; }
  uint64_t error_offset() const { return error_offset_; }
  uint32_t key() const { return key_; }
  uint64_t launches() const { return launches_; }

 private:
  static constexpr uint8_t kKeyTag = v1::KeyStats::kKeyFieldNumber << 3;
  static constexpr uint8_t kLaunchesTag = v1::KeyStats::kLaunchesFieldNumber << 3;
  static constexpr uint8_t kMetricTag =
      v1::KeyStats::kMetricFieldNumber << 3 | static_cast<uint8_t>(WireType::kBytes);

  bool ReadMetric(const Field& record, MetricRecord* metric) {
    metric->value.fill(0);
    FieldCursor cursor(record);
    for (Field field; cursor.Next(&field);) {
      if (field.type == WireType::kVarint && field.number < metric->value.size()) {
        metric->value[field.number] = field.value;
      }
    }
    if (cursor.ok()) return true;
    Fail(cursor);
    return false;
  }

  // A message of numbers that ascend by their fields, which is what is written. False where it is something else.
  bool ReadNumbers(const uint8_t* at, const uint8_t* end, MetricRecord* metric) const {
    const auto read = [&]<size_t... kBefore>(std::index_sequence<kBefore...>) {
      return (ReadNumber<kBefore + 1>(at, end, metric) && ...);
    };
    metric->value[0] = 0;
    return read(std::make_index_sequence<std::tuple_size_v<decltype(metric->value)> - 1>()) && at == end;
  }
  template <size_t kNumber>
  bool ReadNumber(const uint8_t*& at, const uint8_t* end, MetricRecord* metric) const {
    uint64_t& value = metric->value[kNumber];
    value = 0;
    if (at >= end || *at != kNumber << 3) return true;
    // Up to the end of the record, so that its last bytes alone are read one by one; a number that goes on behind the
    // metric leaves `at` there.
    at = ParseVarint(at + 1, end_, &value);
    return at != nullptr;
  }

  void Fail(const FieldCursor& cursor) {
    error_ = cursor.error();
    error_offset_ = cursor.error_offset();
  }

  const uint8_t* begin_;
  const uint8_t* at_;
  const uint8_t* end_;
  uint64_t offset_;  // in the file, of begin_
  uint32_t key_ = 0;
  uint64_t launches_ = 0;
  const char* error_ = nullptr;
  uint64_t error_offset_ = 0;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_TRACE_KEY_STATS_H_
