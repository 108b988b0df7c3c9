#include "cli/import/torch/event.h"

#include <algorithm>
#include <span>

#include "cli/import/torch/words.h"

namespace rfinject::cli {

namespace {

// "1414456661803.68" microseconds as nanoseconds, exactly; further digits are cut. Nothing for what is no number, or
// for one that 64 bits cannot hold.
std::optional<int64_t> ParseMicroseconds(std::string_view text) {
  const bool negative = ConsumePrefix(&text, "-");
  const size_t exponent = text.find_first_of("eE");
  if (exponent != std::string_view::npos) {
    double value = 0;
    constexpr double kMost = 9e15;
    if (!ParseNumber(text, &value) || !(value < kMost)) return std::nullopt;
    return static_cast<int64_t>(value * 1e3) * (negative ? -1 : 1);
  }
  const size_t point = text.find('.');
  int64_t whole = 0, part = 0;
  if (!ParseNumber(text.substr(0, point), &whole)) return std::nullopt;
  if (point != std::string_view::npos) {
    int64_t unit = 100;
    for (const char digit : text.substr(point + 1)) {
      if (digit < '0' || digit > '9') return std::nullopt;
      part += unit * (digit - '0');
      unit /= 10;
    }
  }
  int64_t sum = 0;
  if (__builtin_mul_overflow(whole, int64_t{1000}, &sum) || __builtin_add_overflow(sum, part, &sum)) {
    return std::nullopt;
  }
  return negative ? -sum : sum;
}

// Writes the text to a member of the event.
struct MemberSetter {
  std::string_view text;
  TorchEvent& event;

  void operator()(std::monostate) const {}
  void operator()(std::string TorchEvent::*member) const {
    constexpr size_t kLongestName = 64u << 10, kLongestId = 256;
    (event.*member).assign(text.substr(0, member == &TorchEvent::name ? kLongestName : kLongestId));
  }
  void operator()(std::optional<int64_t> TorchEvent::*member) const { event.*member = ParseMicroseconds(text); }
  void operator()(uint64_t TorchEvent::*member) const { event.*member = Unsigned(text); }
  void operator()(int64_t TorchEvent::*member) const {
    event.*member = static_cast<int64_t>(std::min<uint64_t>(Unsigned(text), INT64_MAX));
  }
  void operator()(uint32_t TorchEvent::*member) const { event.*member = Unsigned32(text); }
};

const TorchField* FindField(std::span<const TorchField> fields, std::string_view key) {
  const auto found = std::ranges::find(fields, key, &TorchField::key);
  return found == fields.end() ? nullptr : &*found;
}

}  // namespace

uint64_t Unsigned(std::string_view text) {
  uint64_t value = 0;
  if (ParseNumber(text, &value)) return value;
  double real = 0;
  constexpr double kMost = 1.8e19;
  return ParseNumber(text, &real) && real > 0 && real < kMost ? static_cast<uint64_t>(real) : 0;
}

uint32_t Unsigned32(std::string_view text) {
  return static_cast<uint32_t>(std::min<uint64_t>(Unsigned(text), UINT32_MAX));
}

const TorchField* EventField(std::string_view key) {
  static constexpr TorchField kFields[] = {{"ph", &TorchEvent::phase},     {"cat", &TorchEvent::category},
                                           {"name", &TorchEvent::name},    {"pid", &TorchEvent::process},
                                           {"tid", &TorchEvent::thread},   {"ts", &TorchEvent::start},
                                           {"dur", &TorchEvent::duration}, {"args", {}}};
  return FindField(kFields, key);
}

const TorchField* ArgumentField(std::string_view key) {
  static constexpr TorchField kFields[] = {{"External id", &TorchEvent::external_id},
                                           {"external id", &TorchEvent::external_id},
                                           {"correlation", &TorchEvent::correlation},
                                           {"Sequence number", &TorchEvent::sequence},
                                           {"Input Dims", &TorchEvent::dims},
                                           {"Input dims", &TorchEvent::dims},
                                           {"Input type", &TorchEvent::types},
                                           {"Input Strides", &TorchEvent::strides},
                                           {"Concrete Inputs", &TorchEvent::values},
                                           {"device", &TorchEvent::device},
                                           {"stream", &TorchEvent::stream},
                                           {"grid", &TorchEvent::grid},
                                           {"block", &TorchEvent::block},
                                           {"shared memory", &TorchEvent::shared_bytes},
                                           {"Total Allocated", &TorchEvent::allocated},
                                           {"Device Type", &TorchEvent::device_type}};
  return FindField(kFields, key);
}

void SetField(const TorchField& field, std::string_view text, TorchEvent* event) {
  std::visit(MemberSetter{text, *event}, field.member);
}

}  // namespace rfinject::cli
