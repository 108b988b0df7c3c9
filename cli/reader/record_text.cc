#include "cli/reader/record_text.h"

#include <algorithm>
#include <charconv>

#include "cli/reader/schema.h"

namespace rfinject::cli {
namespace {

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

void AppendField(std::string& out, const WireField& field, std::span<const SchemaField> schema);

void AppendMessage(std::string& out, const WireField& field, std::span<const SchemaField> schema) {
  out += " {";
  WireCursor cursor(field);
  for (WireField inner; cursor.Next(&inner);) {
    out += ' ';
    AppendField(out, inner, schema);
  }
  if (!cursor.ok()) {
    out += " # byte " + std::to_string(cursor.error_offset()) + ": ";
    out += cursor.error();
  }
  out += " }";
}

void AppendField(std::string& out, const WireField& field, std::span<const SchemaField> schema) {
  const auto known =
      std::find_if(schema.begin(), schema.end(), [&](const SchemaField& f) { return f.number == field.number; });
  if (known == schema.end()) {
    out += std::to_string(field.number) + ": ";
    field.type == WireType::kBytes ? AppendText(out, field.text()) : void(out += std::to_string(field.value));
    return;
  }
  out += known->name;
  if (field.type == WireType::kBytes) {
    if (known->kind == FieldKind::kMessage) return AppendMessage(out, field, known->message);
    out += ": ";
    if (known->kind == FieldKind::kText) return AppendText(out, field.text());
    // A packed repeated number.
    out += '[';
    WireCursor cursor(field);
    bool first = true;
    for (uint64_t value; cursor.NextPacked(&value); first = false) out += (first ? "" : ", ") + std::to_string(value);
    out += ']';
    return;
  }
  out += ": ";
  switch (known->kind) {
    case FieldKind::kBool:
      out += field.value != 0 ? "true" : "false";
      break;
    case FieldKind::kSigned:
      out += std::to_string(static_cast<int64_t>(field.value));
      break;
    case FieldKind::kDouble:
      AppendDouble(out, field.real());
      break;
    case FieldKind::kEnum:
      if (field.value < known->enum_names.size()) {
        out += known->enum_names[field.value];
        break;
      }
      [[fallthrough]];
    default:
      out += std::to_string(field.value);
      break;
  }
}

}  // namespace

std::string RecordText(const WireField& record) {
  std::string out;
  AppendField(out, record, ChunkSchema());
  return out;
}

}  // namespace rfinject::cli
