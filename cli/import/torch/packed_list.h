// File: packed_list.h
//
// A long list of events in little memory: of each the differences to the one before, in as many bytes as they need.
// Blocks of it are read independently of one another.
//
//   PackedList<TorchSpan> spans;
//   spans.Add(span);
//   spans.ForEach([](uint64_t index, const TorchSpan& span) { ... });
#ifndef RFINJECT_CLI_IMPORT_TORCH_PACKED_LIST_H_
#define RFINJECT_CLI_IMPORT_TORCH_PACKED_LIST_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cli/import/torch/span.h"

namespace rfinject::cli {

// Writes numbers: seven bits a byte, the lowest first, the eighth bit says that more follow (LEB128).
class NumberPacker {
 public:
  explicit NumberPacker(std::string* bytes) : bytes_(*bytes) {}

  template <typename Number>
  void Plain(Number& number) {
    auto left = static_cast<uint64_t>(number);
    for (; left >= 0x80; left >>= 7) bytes_.push_back(static_cast<char>(left | 0x80));
    bytes_.push_back(static_cast<char>(left));
  }
  // The difference to `last`, which becomes `number`; small ones are short whatever their sign is.
  template <typename Number>
  void Difference(Number& number, Number& last) {
    const uint64_t apart = static_cast<uint64_t>(number) - static_cast<uint64_t>(last);
    uint64_t folded = (apart << 1) ^ (0 - (apart >> 63));
    Plain(folded);
    last = number;
  }

 private:
  std::string& bytes_;
};

// Reads what NumberPacker wrote.
class NumberUnpacker {
 public:
  explicit NumberUnpacker(const char* at) : at_(at) {}

  template <typename Number>
  void Plain(Number& number) {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<uint8_t>(*at_++);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) break;
    }
    number = static_cast<Number>(value);
  }
  template <typename Number>
  void Difference(Number& number, Number& last) {
    uint64_t folded = 0;
    Plain(folded);
    number = last = static_cast<Number>(static_cast<uint64_t>(last) + ((folded >> 1) ^ (0 - (folded & 1))));
  }

 private:
  const char* at_;
};

// The fields of an event, for writing and for reading. What most events lack costs a bit of `flags`; `last` has for
// each field the value that was there last.
template <typename Coder>
void CodeFields(Coder& coder, TorchSpan& span, TorchSpan& last) {
  constexpr uint32_t kKind = 3, kSequence = 4, kExternalId = 8, kOperands = 16;
  uint32_t flags = static_cast<uint32_t>(span.kind) | (span.sequence != TorchSpan::kNone ? kSequence : 0) |
                   (span.external_id != 0 ? kExternalId : 0) | (span.operands != 0 ? kOperands : 0);
  coder.Plain(flags);
  span.kind = static_cast<TorchSpan::Kind>(flags & kKind);
  coder.Difference(span.start, last.start);
  int64_t before = span.start;
  coder.Difference(span.end, before);
  coder.Difference(span.thread, last.thread);
  coder.Plain(span.name);
  if ((flags & kSequence) != 0) coder.Difference(span.sequence, last.sequence);
  if ((flags & kExternalId) != 0) coder.Difference(span.external_id, last.external_id);
  if ((flags & kOperands) != 0) coder.Plain(span.operands);
}

template <typename Coder>
void CodeFields(Coder& coder, TorchCall& call, TorchCall& last) {
  coder.Difference(call.start, last.start);
  int64_t before = call.start;
  coder.Difference(call.end, before);
  coder.Difference(call.correlation, last.correlation);
  coder.Difference(call.thread, last.thread);
  coder.Plain(call.name);
}

template <typename Coder>
void CodeFields(Coder& coder, TorchActivity& activity, TorchActivity& last) {
  constexpr uint32_t kKind = 3, kExternalId = 4;
  uint32_t flags = static_cast<uint32_t>(activity.kind) | (activity.external_id != 0 ? kExternalId : 0);
  coder.Plain(flags);
  activity.kind = static_cast<TorchActivity::Kind>(flags & kKind);
  coder.Difference(activity.start, last.start);
  coder.Plain(activity.duration);
  coder.Difference(activity.correlation, last.correlation);
  if ((flags & kExternalId) != 0) coder.Difference(activity.external_id, last.external_id);
  coder.Plain(activity.launch);
  coder.Difference(activity.stream, last.stream);
}

inline int64_t EndOf(const TorchSpan& span) { return span.end; }
inline int64_t EndOf(const TorchCall& call) { return call.end; }
inline int64_t EndOf(const TorchActivity& activity) { return activity.start + activity.duration; }

template <typename Event>
class PackedList {
 public:
  struct Block {
    std::string bytes;
    uint64_t first = 0;  // the index of its first event
    uint32_t events = 0;
    int64_t start = INT64_MAX, end = INT64_MIN;  // of the first that begins and of the last that ends
  };

  uint64_t size() const { return size_; }
  const std::vector<Block>& blocks() const { return blocks_; }

  void Add(Event event) {
    constexpr uint32_t kEvents = 4096;
    if (blocks_.empty() || blocks_.back().events == kEvents) {
      if (!blocks_.empty()) blocks_.back().bytes.shrink_to_fit();
      blocks_.push_back({.bytes = {}, .first = size_});
      last_ = {};
    }
    Block& block = blocks_.back();
    block.start = std::min(block.start, event.start);
    block.end = std::max(block.end, EndOf(event));
    NumberPacker packer(&block.bytes);
    CodeFields(packer, event, last_);
    ++block.events;
    ++size_;
  }

  // Calls `visit(index, event)` for each event of a block, in their order.
  template <typename Visitor>
  static void ForEachOf(const Block& block, Visitor&& visit) {
    NumberUnpacker unpacker(block.bytes.data());
    Event last;
    for (uint32_t i = 0; i < block.events; ++i) {
      Event event;
      CodeFields(unpacker, event, last);
      visit(block.first + i, std::as_const(event));
    }
  }
  template <typename Visitor>
  void ForEach(Visitor&& visit) const {
    for (const Block& block : blocks_) ForEachOf(block, visit);
  }

 private:
  std::vector<Block> blocks_;
  uint64_t size_ = 0;
  Event last_;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_TORCH_PACKED_LIST_H_
