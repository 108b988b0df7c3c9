// Enums and writers, and what is made for protoc's classes alone.
#include <string>

#include "proto/plugin/schema.h"

namespace rfinject::plugin {
Variables Of(const Field& field) {
  return {{"field", field.name},
          {"number", std::to_string(field.number)},
          {"type", field.type},
          {"parameter", field.parameter},
          {"function", field.function},
          {"up_to", field.up_to},
          {"default", field.or_one ? "1" : ""},
          {"message", field.message == nullptr ? "" : field.message->name},
          {"key", field.message == nullptr ? "" : field.message->fields.front().name},
          {"value", field.enumeration ? "static_cast<uint64_t>(value)" : "value"}};
}

void PrintEnum(const Enum& type, Printer* out) {
  Variables v = {{"name", type.name}, {"unknown", type.unknown}, {"count", std::to_string(type.constants.size())}};
  out->Print(v, "\nenum class $name$ : uint8_t {\n");
  for (const auto& [name, number] : type.constants) {
    out->Print("  $name$ = $number$,\n", "name", name, "number", std::to_string(number));
  }
  out->Print(v,
             "};\n\n// Reads a number, which may be of a newer schema.\n"
             "constexpr void FromNumber(int number, $name$* into) {\n"
             "  *into = number >= 0 && number < $count$ ? static_cast<$name$>(number) : $name$::$unknown$;\n}\n");
}

void PrintWriter(const Message& message, Printer* out) {
  const Variables v = {{"name", message.name}};
  out->Print(v, "\nclass $name$Writer {\n public:\n");
  // A message that is nested nowhere is the whole content of an encoder.
  if (!message.nested) {
    out->Print(v, "  explicit $name$Writer(wire::Encoder* out) noexcept : out_(out) {}\n");
  } else {
    out->Print(
        v,
        "  $name$Writer(wire::Encoder* out, uint32_t field) noexcept : out_(out), mark_(out->Begin(field)) {}\n"
        "  ~$name$Writer() { out_->End(mark_); }\n");
  }
  out->Print(v,
             "  $name$Writer(const $name$Writer&) = delete;\n"
             "  $name$Writer& operator=(const $name$Writer&) = delete;\n");
  for (const Field& field : message.fields) {
    if (field.message != nullptr) {
      out->Print(Of(field),
                 "  $message$Writer begin_$field$() noexcept { return $message$Writer(out_, $number$); }\n");
    } else if (!field.repeated) {
      out->Print(Of(field),
                 "  void set_$field$($parameter$ value) noexcept { out_->$function$($number$, $value$); }\n");
    } else if (field.text) {
      out->Print(Of(field), "  void add_$field$($parameter$ value) noexcept { out_->ForceText($number$, value); }\n");
    } else {
      out->Print(
          Of(field),
          "  void set_$field$(std::span<const $parameter$> values) noexcept { out_->PackedUint($number$, values); "
          "}\n");
    }
  }
  out->Print("\n private:\n  wire::Encoder* const out_;\n");
  if (message.nested) out->Print("  const size_t mark_;\n");
  out->Print("};\n");
}

void PrintNumbers(const Message& message, Printer* out) {
  out->Print(
      "\n// The fields of a $name$, by number: what reads them where they lie fills them all.\n"
      "struct $name$Numbers {\n"
      "  std::array<uint64_t, $count$> value;  // NOLINT(cppcoreguidelines-pro-type-member-init)\n",
      "name", message.name, "count", std::to_string(message.last_number + 1));
  for (const Field& field : message.fields) {
    out->Print(Of(field), "  $type$ $field$() const { return static_cast<$type$>(value[$number$]); }\n");
  }
  out->Print("};\n");
}

namespace {

// The field that numbers the record, or else its run; null where there is neither.
const Field* NumberOf(const Message& message) {
  const Field* number = nullptr;
  for (const Field& field : message.fields) {
    if (field.type != "uint32_t" || field.repeated) continue;
    if (field.name == "id" || (field.name == "run" && number == nullptr)) number = &field;
  }
  return number;
}

// How a record is written, and what is made of all that the library hands over as they are and of those that are
// merely kept.
void PrintKeptRecords(const Message& message, Printer* out) {
  std::string kinds, lists, of, visits;
  for (const Field& field : message.fields) {
    const Field* const id = field.message == nullptr ? nullptr : NumberOf(*field.message);
    if (id == nullptr || !field.member()) continue;
    Variables v = Of(field);
    v["chunk"] = message.name;
    v["id"] = id->name;
    out->Print(v,
               "\ninline void WriteRecord(const $type$& record, uint32_t $id$, $chunk$Writer* out) {\n"
               "  $message$Writer writer = out->begin_$field$();\n"
               "  writer.set_$id$($id$);\n  Write(record, &writer);\n"
               "  if (record.$id$ != 0) writer.set_$id$($id$);  // the last one counts\n}\n");
    const std::string& type = field.type;
    if (field.message->as_is) kinds += (kinds.empty() ? "" : ", ") + type;
    if (field.message->kept.empty()) continue;
    lists += "  List<" + type + "> " + field.name + ";\n";
    of += "  List<" + type + ">& Of(const " + type + "&) { return " + field.name + "; }\n";
    visits += "  visit(&records->" + field.name + "...);\n";
    out->Print(v, "template <>\ninline constexpr std::string_view kKeptName<$type$> = \"$field$\";\n");
  }
  out->Print(
      "\n// What the library hands over as it is.\nusing RunRecord = std::variant<$kinds$>;\n\n"
      "// What is merely kept of a run: a list of each kind. Of() is the list of a record's kind.\n"
      "template <template <typename> class List>\nstruct KeptRecords {\n$lists$$of$"
      "  friend bool operator==(const KeptRecords&, const KeptRecords&) = default;\n};\n\n"
      "// Calls visit(&list, ...) for every kind, with the lists of all `records`.\n"
      "template <typename Visit, typename... Records>\n"
      "void ForEachList(Visit visit, Records*... records) {\n$visits$}\n",
      "kinds", kinds, "lists", lists, "of", of, "visits", visits);
}

}  // namespace

void PrintRecords(const Message& message, Printer* out) {
  out->Print("\ninline constexpr int kRecordOrder[] = {");
  const char* separator = "";
  for (const Field& field : message.fields) {
    out->Print("$separator$$number$", "separator", separator, "number", std::to_string(field.number));
    separator = ", ";
  }
  out->Print(
      "};\n\n// Returns what `use` makes of the record that is the element `index` of the field `number` of "
      "protoc's\n"
      "// $name$, or `keep` of one that is merely kept and an empty struct for it; a default value where the record is "
      "read\n// in place, or is not known.\n"
      "template <typename Message, typename Use, typename Keep>\n"
      "auto UseRecord(const Message& message, int number, int index, Use use, Keep keep) {\n"
      "  using Result = decltype(use(message.$first$(index)));\n  switch (number) {\n",
      "name", message.name, "first", message.fields.front().name);
  for (const Field& field : message.fields) {
    if (field.message != nullptr && field.message->in_place) continue;
    const bool kept = field.message != nullptr && !field.message->kept.empty();
    Variables v = Of(field);
    v["index"] = field.repeated ? "index" : "";
    out->Print(v, "    case $number$:\n");
    out->Print(v, kept ? "      return keep(message.$field$($index$), $type$());\n"
                       : "      return use(message.$field$($index$));\n");
  }
  out->Print(
      "    default:\n      return Result();\n  }\n}\n\n"
      "// WriteRecord writes a record under this id, or as one of this run, whatever it says itself.");
  PrintKeptRecords(message, out);
}

void PrintClean(const Message& message, Printer* out) {
  out->Print(
      "\n// For protoc's $name$, which is named by its type alone.\ntemplate <typename Message>\n"
      "void Clean$name$([[maybe_unused]] Message* message) {\n",
      "name", message.name);
  for (const Field& field : message.fields) {
    if (field.message != nullptr && field.repeated) {
      out->Print(Of(field), "  for (auto& one : *message->mutable_$field$()) Clean$message$(&one);\n");
    } else if (field.message != nullptr) {
      out->Print(Of(field), "  if (message->has_$field$()) Clean$message$(message->mutable_$field$());\n");
    } else if (field.text && field.repeated) {
      out->Print(Of(field),
                 "  for (auto& one : *message->mutable_$field$()) {\n"
                 "    if (!wire::IsUtf8(one)) one = wire::CleanUtf8(one);\n  }\n");
    } else if (field.text) {
      out->Print(Of(field),
                 "  if (!wire::IsUtf8(message->$field$())) "
                 "message->set_$field$(wire::CleanUtf8(message->$field$()));\n");
    }
  }
  out->Print("}\n");
}

}  // namespace rfinject::plugin
