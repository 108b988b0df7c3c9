#include "cli/testing/hostile_message.h"

#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <cstdint>

namespace rfinject::cli::testing {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;

constexpr int kNested = 200, kMostFields = 6;
constexpr uint32_t kBytes = WireFormatLite::WIRETYPE_LENGTH_DELIMITED;

class Maker {
 public:
  explicit Maker(std::mt19937_64& random) : random_(random) {}

  std::string Message(const Descriptor& type, size_t most, int depth) {
    std::string text;
    for (uint64_t n = Below(kMostFields); n > 0; --n) {
      const FieldDescriptor* const field = type.field_count() > 0 && Below(16) > 0
                                               ? type.field(static_cast<int>(Below(Count(type.field_count()))))
                                               : nullptr;
      const uint32_t number = field != nullptr ? static_cast<uint32_t>(field->number()) : 1 + Below(70);
      const uint32_t own = field == nullptr       ? kBytes
                           : field->is_packable() ? (Below(2) == 0 ? kBytes : WireTypeOf(*field))
                                                  : WireTypeOf(*field);
      const uint32_t wire = Below(4) > 0 ? own : Below(8);  // 6 and 7 are none
      const size_t room = most - std::min(most, text.size());
      for (uint64_t times = Below(8) > 0 ? 1 : 1 + Below(8); times > 0; --times) {
        Varint(uint64_t{number} << 3 | wire, &text);
        Content(type, field, wire, room / 2, depth, &text);
      }
    }
    if (text.size() > most) text.resize(most);
    return text;
  }

 private:
  static uint64_t Count(int count) { return static_cast<uint64_t>(count); }
  static uint32_t WireTypeOf(const FieldDescriptor& field) {
    return WireFormatLite::WireTypeForFieldType(static_cast<WireFormatLite::FieldType>(field.type()));
  }
  uint32_t Below(uint64_t limit) { return static_cast<uint32_t>(random_() % limit); }

  static void Varint(uint64_t value, std::string* text) {
    for (; value >= 0x80; value >>= 7) text->push_back(static_cast<char>(value | 0x80));
    text->push_back(static_cast<char>(value));
  }

  std::string Random(size_t size) {
    std::string text(size, static_cast<char>(random_()));
    if (Below(2) == 0) std::generate(text.begin(), text.end(), [&] { return static_cast<char>(random_()); });
    return text;
  }

  // What a field of the wire type for bytes holds.
  std::string Held(const Descriptor& type, const FieldDescriptor* field, size_t most, int depth) {
    const auto& file = *type.file();
    switch (Below(10)) {
      case 0:
        return {};
      case 1:
        return Random(1);
      case 2:
        return Random(std::min<size_t>(most, 1 + Below(1 << 16)));
      case 3: {  // a message in a message, in a message
        std::string text = Random(Below(16));
        for (int i = 0; i < kNested && text.size() < most; ++i) {
          std::string outer;
          Varint(uint64_t{field != nullptr ? static_cast<uint32_t>(field->number()) : 1} << 3 | kBytes, &outer);
          Varint(text.size(), &outer);
          text = outer + text;
        }
        return text;
      }
      case 4:
        if (depth <= 0) return Random(Below(8));
        return Message(*file.message_type(static_cast<int>(Below(Count(file.message_type_count())))), most,
                       depth - 1);
      default:
        if (field == nullptr || field->message_type() == nullptr || depth <= 0) return Random(Below(64));
        return Message(*field->message_type(), most, depth - 1);
    }
  }

  void Content(const Descriptor& type, const FieldDescriptor* field, uint32_t wire, size_t most, int depth,
               std::string* text) {
    switch (wire) {
      case WireFormatLite::WIRETYPE_VARINT:
        Varint(Below(2) == 0 ? Below(8) : random_() >> Below(64), text);
        break;
      case WireFormatLite::WIRETYPE_FIXED64:
        *text += Random(8);
        break;
      case WireFormatLite::WIRETYPE_FIXED32:
        *text += Random(4);
        break;
      case kBytes: {
        const std::string held = Held(type, field, most, depth);
        Varint(Below(64) > 0 ? held.size() : random_() >> Below(64), text);
        *text += held;
        break;
      }
      default:
        break;  // a group, or nothing that there is
    }
  }

  std::mt19937_64& random_;
};

}  // namespace

std::string HostileMessage(const Descriptor& type, size_t most, std::mt19937_64& random) {
  constexpr int kDepth = 5;
  return Maker(random).Message(type, most, kDepth);
}

}  // namespace rfinject::cli::testing
