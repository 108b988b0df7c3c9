#include "cli/trace/dump.h"

#include <google/protobuf/descriptor.h>

#include <bit>
#include <charconv>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "proto/rfinject/v1/trace.pb.h"

namespace rfinject::cli {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

void AppendText(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte >= 0x7F) {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

void AppendDouble(std::string& out, double value) {
  char text[64];
  const std::to_chars_result result = std::to_chars(text, text + sizeof text, value);
  out.append(text, result.ptr);
}

void AppendField(std::string& out, const Field& field, const Descriptor& type);

void AppendMessage(std::string& out, const Field& field, const Descriptor& type) {
  out += " {";
  FieldCursor cursor(field);
  for (Field inner; cursor.Next(&inner);) {
    out += ' ';
    AppendField(out, inner, type);
  }
  if (!cursor.ok()) absl::StrAppend(&out, " # byte ", cursor.error_offset(), ": ", cursor.error());
  out += " }";
}

void AppendPacked(std::string& out, const Field& field) {
  out += '[';
  FieldCursor cursor(field);
  bool first = true;
  for (uint64_t value; cursor.NextPacked(&value); first = false) absl::StrAppend(&out, first ? "" : ", ", value);
  out += ']';
}

void AppendNumber(std::string& out, const Field& field, const FieldDescriptor& known) {
  switch (known.type()) {
    case FieldDescriptor::TYPE_BOOL:
      out += field.value != 0 ? "true" : "false";
      return;
    case FieldDescriptor::TYPE_INT64:
      absl::StrAppend(&out, static_cast<int64_t>(field.value));
      return;
    case FieldDescriptor::TYPE_DOUBLE:
      return AppendDouble(out, field.type == WireType::kFixed64 ? std::bit_cast<double>(field.value) : 0);
    case FieldDescriptor::TYPE_ENUM: {
      const auto* value =
          field.value > INT32_MAX ? nullptr : known.enum_type()->FindValueByNumber(static_cast<int>(field.value));
      if (value != nullptr) {
        out += value->name();
        return;
      }
      break;
    }
    default:
      break;
  }
  absl::StrAppend(&out, field.value);
}

// By the descriptor of the message that the field is in. The order is that of the file, which protobuf's own text
// format would not keep.
void AppendField(std::string& out, const Field& field, const Descriptor& type) {
  const FieldDescriptor* known = type.FindFieldByNumber(static_cast<int>(field.number));
  if (known == nullptr) {
    absl::StrAppend(&out, field.number, ": ");
    field.type == WireType::kBytes ? AppendText(out, field.text()) : absl::StrAppend(&out, field.value);
    return;
  }
  out += known->name();
  const bool bytes = field.type == WireType::kBytes;
  if (bytes && known->message_type() != nullptr) return AppendMessage(out, field, *known->message_type());
  out += ": ";
  if (!bytes) return AppendNumber(out, field, *known);
  known->type() == FieldDescriptor::TYPE_BYTES ? AppendText(out, field.text()) : AppendPacked(out, field);
}

}  // namespace

std::string RecordText(const Field& record) {
  std::string out;
  AppendField(out, record, *v1::Chunk::descriptor());
  return out;
}

}  // namespace rfinject::cli
