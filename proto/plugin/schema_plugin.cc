// protoc-gen-rfinject: makes NAME.schema.h of NAME.proto, which is the schema for code that must not link
// libprotobuf. The header holds, in namespace rfinject::trace:
//
//   * each enum as an `enum class`: PHASE_FORWARD of `enum Phase` becomes Phase::kForward;
//   * each message as a writer over proto/wire/encoder.h: RunWriter has set_… for single fields, add_… for repeated
//     texts, set_… with a span for repeated numbers, and begin_…, which returns the writer of a nested message;
//   * each message of the option `structs=A+B` as a plain struct with comparison, ForEachPair, Merge and
//   WriteChanges,
//     and with FromMessage and ToMessage for code that has protoc's class as well;
//   * CleanTexts, which makes every text of protoc's class valid UTF-8.
//
// A field whose type is a message without a struct has no member. The plugin refuses what the schema does not use
// (maps, oneofs, floats, fixed and signed types), with the field's name.
#include <google/protobuf/compiler/code_generator.h>
#include <google/protobuf/compiler/plugin.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/printer.h>
#include <google/protobuf/io/zero_copy_stream.h>

#include <cctype>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::compiler::GeneratorContext;
using google::protobuf::io::Printer;
using Variables = std::map<std::string, std::string>;

// How a field is written: the encoder's functions for one value, and the type that callers pass.
struct Kind {
  std::string type;    // of a setter's parameter
  std::string member;  // of a struct's member; empty where it is the same
  std::string single;  // Encoder's function for one value; it leaves out the default
  std::string cast;    // a cast that the value needs
};

bool IsText(const FieldDescriptor& field) {
  return field.type() == FieldDescriptor::TYPE_BYTES || field.type() == FieldDescriptor::TYPE_STRING;
}
bool IsMessage(const FieldDescriptor& field) { return field.type() == FieldDescriptor::TYPE_MESSAGE; }

bool KindOf(const FieldDescriptor& field, Kind* kind) {
  switch (field.type()) {
    case FieldDescriptor::TYPE_UINT32:
      *kind = {"uint32_t", "", "Uint", "value"};
      return true;
    case FieldDescriptor::TYPE_UINT64:
      *kind = {"uint64_t", "", "Uint", "value"};
      return true;
    case FieldDescriptor::TYPE_INT64:
      *kind = {"int64_t", "", "Int", "value"};
      return true;
    case FieldDescriptor::TYPE_BOOL:
      *kind = {"bool", "", "Bool", "value"};
      return true;
    case FieldDescriptor::TYPE_DOUBLE:
      *kind = {"double", "", "Double", "value"};
      return true;
    case FieldDescriptor::TYPE_BYTES:
    case FieldDescriptor::TYPE_STRING:
      *kind = {"std::string_view", "std::string", "Text", "value"};
      return true;
    case FieldDescriptor::TYPE_ENUM:
      *kind = {field.enum_type()->name(), "", "Uint", "static_cast<uint64_t>(value)"};
      return true;
    case FieldDescriptor::TYPE_MESSAGE:
      *kind = {field.message_type()->name(), "", "", ""};
      return true;
    default:
      return false;
  }
}

std::string Upper(const std::string& text) {
  std::string upper;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i > 0 && std::isupper(static_cast<unsigned char>(text[i])) != 0) upper += '_';
    upper += static_cast<char>(std::toupper(static_cast<unsigned char>(text[i])));
  }
  return upper;
}

// Returns the name of a constant: kACurrentNode for TIER_A_CURRENT_NODE of Tier.
std::string ConstantName(const EnumDescriptor& type, const std::string& value) {
  const std::string prefix = Upper(type.name()) + "_";
  std::string name = "k";
  bool start = true;
  for (const char c : value.rfind(prefix, 0) == 0 ? value.substr(prefix.size()) : value) {
    if (c == '_') {
      start = true;
      continue;
    }
    name += static_cast<char>(start ? std::toupper(static_cast<unsigned char>(c))
                                    : std::tolower(static_cast<unsigned char>(c)));
    start = false;
  }
  return name;
}

class Generator {
 public:
  Generator(const FileDescriptor& file, std::set<std::string> structs, Printer* out)
      : file_(file), structs_(std::move(structs)), out_(*out) {}

  // Makes the header. Returns an empty text on success, otherwise what in the schema is not understood.
  std::string Generate() {
    if (std::string error = Sort(); !error.empty()) return error;
    Begin();
    for (int i = 0; i < file_.enum_type_count(); ++i) Enum(*file_.enum_type(i));
    for (const Descriptor* message : sorted_) Writer(*message);
    for (const Descriptor* message : sorted_) {
      if (structs_.count(message->name()) > 0) Struct(*message);
    }
    for (const Descriptor* message : sorted_) Clean(*message);
    End();
    return {};
  }

 private:
  using Fields = std::vector<const FieldDescriptor*>;

  // Sorts messages such that nested ones come before those that hold them, since a writer returns theirs by value.
  std::string Sort() {
    for (const std::string& name : structs_) {
      if (file_.FindMessageTypeByName(name) == nullptr) return "structs=" + name + ": there is no such message";
    }
    for (int i = 0; i < file_.message_type_count(); ++i) {
      if (std::string error = Visit(*file_.message_type(i)); !error.empty()) return error;
    }
    return {};
  }
  std::string Visit(const Descriptor& message) {
    if (done_.count(&message) > 0) return {};
    if (!open_.insert(&message).second) return message.full_name() + " contains itself";
    if (message.nested_type_count() + message.enum_type_count() + message.oneof_decl_count() > 0) {
      return message.full_name() + " has nested types, a map or a oneof";
    }
    for (int i = 0; i < message.field_count(); ++i) {
      const FieldDescriptor& field = *message.field(i);
      Kind kind;
      const bool number =
          field.type() == FieldDescriptor::TYPE_UINT32 || field.type() == FieldDescriptor::TYPE_UINT64;
      if (!KindOf(field, &kind) || (field.is_repeated() && !number && !IsText(field) && !IsMessage(field))) {
        return field.full_name() + " has a type that writers are not made for";
      }
      if (!IsMessage(field)) continue;
      nested_.insert(field.message_type());
      if (std::string error = Visit(*field.message_type()); !error.empty()) return error;
    }
    done_.insert(&message);
    sorted_.push_back(&message);
    return {};
  }

  void Begin() {
    out_.Print(
        "// Made by protoc-gen-rfinject (proto/plugin/schema_plugin.cc) from $file$. Do not edit.\n"
        "#ifndef RFINJECT_TRACE_SCHEMA_H_\n#define RFINJECT_TRACE_SCHEMA_H_\n\n"
        "#include <compare>\n#include <cstddef>\n#include <cstdint>\n#include <span>\n#include <string>\n"
        "#include <string_view>\n#include <vector>\n\n"
        "#include \"proto/wire/encoder.h\"\n#include \"proto/wire/text.h\"\n\nnamespace rfinject::trace {\n",
        "file", file_.name());
  }
  void End() { out_.Print("\n}  // namespace rfinject::trace\n\n#endif  // RFINJECT_TRACE_SCHEMA_H_\n"); }

  void Enum(const EnumDescriptor& type) {
    out_.Print("\nenum class $name$ : uint8_t {\n", "name", type.name());
    for (int i = 0; i < type.value_count(); ++i) {
      out_.Print("  $name$ = $number$,\n", "name", ConstantName(type, type.value(i)->name()), "number",
                 std::to_string(type.value(i)->number()));
    }
    out_.Print("};\n");
  }

  void Writer(const Descriptor& message) {
    Variables v = {{"name", message.name()}};
    out_.Print(v, "\nclass $name$Writer {\n public:\n");
    // A message that is nested nowhere is the whole content of an encoder.
    if (nested_.count(&message) == 0) {
      out_.Print(v, "  explicit $name$Writer(wire::Encoder* out) noexcept : out_(out) {}\n");
    } else {
      out_.Print(v,
                 "  $name$Writer(wire::Encoder* out, uint32_t field) noexcept : out_(out), mark_(out->Begin(field)) "
                 "{}\n"
                 "  ~$name$Writer() { out_->End(mark_); }\n");
    }
    out_.Print(v,
               "  $name$Writer(const $name$Writer&) = delete;\n  $name$Writer& operator=(const $name$Writer&) = "
               "delete;\n");
    for (int i = 0; i < message.field_count(); ++i) {
      const FieldDescriptor& field = *message.field(i);
      Kind kind;
      KindOf(field, &kind);
      v["field"] = field.name();
      v["number"] = std::to_string(field.number());
      v["type"] = kind.type;
      v["function"] = kind.single;
      v["value"] = kind.cast;
      if (IsMessage(field)) {
        out_.Print(v, "  $type$Writer begin_$field$() noexcept { return $type$Writer(out_, $number$); }\n");
      } else if (!field.is_repeated()) {
        out_.Print(v, "  void set_$field$($type$ value) noexcept { out_->$function$($number$, $value$); }\n");
      } else if (IsText(field)) {
        out_.Print(v, "  void add_$field$($type$ value) noexcept { out_->ForceText($number$, value); }\n");
      } else {
        out_.Print(
            v,
            "  void set_$field$(std::span<const $type$> values) noexcept { out_->PackedUint($number$, values); "
            "}\n");
      }
    }
    out_.Print("\n private:\n  wire::Encoder* const out_;\n");
    if (nested_.count(&message) > 0) out_.Print("  const size_t mark_;\n");
    out_.Print("};\n");
  }

  // The fields that a struct has a member for.
  Fields Members(const Descriptor& message) const {
    Fields members;
    for (int i = 0; i < message.field_count(); ++i) {
      const FieldDescriptor* field = message.field(i);
      if (!IsMessage(*field) || structs_.count(field->message_type()->name()) > 0) members.push_back(field);
    }
    return members;
  }

  void Struct(const Descriptor& message) {
    const Fields members = Members(message);
    Variables v = {{"name", message.name()}};
    out_.Print(v, "\nstruct $name$ {\n");
    for (const FieldDescriptor* field : members) {
      Kind kind;
      KindOf(*field, &kind);
      const std::string type = kind.member.empty() ? kind.type : kind.member;
      const bool bare = IsText(*field) || IsMessage(*field) || field->is_repeated();
      out_.Print("  $type$ $field$$value$;\n", "type", field->is_repeated() ? "std::vector<" + type + ">" : type,
                 "field", field->name(), "value", bare ? "" : "{}");
    }
    out_.Print(v,
               "  friend bool operator==(const $name$&, const $name$&) = default;\n"
               "  friend auto operator<=>(const $name$&, const $name$&) = default;\n};\n");
    Pairs(message, members);
    Merge(message, members);
    WriteChanges(message, members);
    Messages(message, members);
  }

  void Pairs(const Descriptor& message, const Fields& members) {
    out_.Print(
        "\n// Calls visit(a.field, b.field) for every field.\n"
        "template <typename Visit>\nvoid ForEachPair(const $name$& a, const $name$& b, Visit visit) {\n",
        "name", message.name());
    for (const FieldDescriptor* field : members)
      out_.Print("  visit(a.$field$, b.$field$);\n", "field", field->name());
    out_.Print("}\n");
  }

  void Merge(const Descriptor& message, const Fields& members) {
    out_.Print(
        "\n// Puts the set fields of `from` into `into`. Repeated messages are matched by their first field, and\n"
        "// other repeated fields are replaced.\n"
        "inline void Merge(const $name$& from, $name$* into) {\n",
        "name", message.name());
    for (const FieldDescriptor* field : members) {
      Variables v = {{"field", field->name()}};
      if (IsMessage(*field) && field->is_repeated()) {
        v["type"] = field->message_type()->name();
        v["key"] = field->message_type()->field(0)->name();
        out_.Print(v,
                   "  for (const $type$& one : from.$field$) {\n"
                   "    $type$* known = nullptr;\n"
                   "    for ($type$& other : into->$field$) {\n"
                   "      if (other.$key$ == one.$key$) known = &other;\n"
                   "    }\n"
                   "    if (known == nullptr) known = &into->$field$.emplace_back();\n"
                   "    Merge(one, known);\n"
                   "  }\n");
      } else if (IsMessage(*field)) {
        out_.Print(v, "  Merge(from.$field$, &into->$field$);\n");
      } else if (IsText(*field) || field->is_repeated()) {
        out_.Print(v, "  if (!from.$field$.empty()) into->$field$ = from.$field$;\n");
      } else {
        out_.Print(v, "  if (from.$field$ != decltype(from.$field$){}) into->$field$ = from.$field$;\n");
      }
    }
    out_.Print("}\n");
  }

  void WriteChanges(const Descriptor& message, const Fields& members) {
    out_.Print(
        "\n// Writes the fields in which `now` differs from `before`; of repeated ones, that differ anywhere, all.\n"
        "inline void WriteChanges(const $name$& before, const $name$& now, $name$Writer* out) noexcept {\n",
        "name", message.name());
    for (const FieldDescriptor* field : members) {
      Variables v = {{"field", field->name()}};
      out_.Print(v, "  if (before.$field$ != now.$field$) ");
      if (IsMessage(*field)) {
        v["type"] = field->message_type()->name();
        if (field->is_repeated()) {
          out_.Print(v,
                     "{\n    for (const $type$& one : now.$field$) {\n"
                     "      $type$Writer writer = out->begin_$field$();\n"
                     "      WriteChanges($type${}, one, &writer);\n    }\n  }\n");
        } else {
          out_.Print(v,
                     "{\n    $type$Writer writer = out->begin_$field$();\n"
                     "    WriteChanges(before.$field$, now.$field$, &writer);\n  }\n");
        }
      } else if (IsText(*field) && field->is_repeated()) {
        out_.Print(v, "{\n    for (const std::string& one : now.$field$) out->add_$field$(one);\n  }\n");
      } else {
        out_.Print(v, "out->set_$field$(now.$field$);\n");
      }
    }
    out_.Print("}\n");
  }

  // Writes the conversion from and to protoc's class, as templates, so that the header does not need that class.
  void Messages(const Descriptor& message, const Fields& members) {
    out_.Print("\ntemplate <typename Message>\nvoid FromMessage(const Message& from, $name$* into) {\n", "name",
               message.name());
    for (const FieldDescriptor* field : members) {
      const Variables v = {{"field", field->name()}};
      if (IsMessage(*field) && field->is_repeated()) {
        out_.Print(v,
                   "  into->$field$.clear();\n"
                   "  for (const auto& one : from.$field$()) FromMessage(one, &into->$field$.emplace_back());\n");
      } else if (IsMessage(*field)) {
        out_.Print(v, "  FromMessage(from.$field$(), &into->$field$);\n");
      } else if (field->is_repeated()) {
        out_.Print(v, "  into->$field$.assign(from.$field$().begin(), from.$field$().end());\n");
      } else {
        out_.Print(v, "  into->$field$ = static_cast<decltype(into->$field$)>(from.$field$());\n");
      }
    }
    out_.Print("}\ntemplate <typename Message>\nvoid ToMessage(const $name$& from, Message* into) {\n", "name",
               message.name());
    for (const FieldDescriptor* field : members) {
      Variables v = {{"field", field->name()}};
      if (IsMessage(*field) && field->is_repeated()) {
        out_.Print(v, "  for (const auto& one : from.$field$) ToMessage(one, into->add_$field$());\n");
      } else if (IsMessage(*field)) {
        v["type"] = field->message_type()->name();
        out_.Print(v, "  if (from.$field$ != $type${}) ToMessage(from.$field$, into->mutable_$field$());\n");
      } else if (field->is_repeated()) {
        out_.Print(v, "  for (const auto& one : from.$field$) into->add_$field$(one);\n");
      } else if (field->type() == FieldDescriptor::TYPE_ENUM) {
        out_.Print(v,
                   "  into->set_$field$(static_cast<decltype(into->$field$())>(static_cast<int>(from.$field$)));\n");
      } else {
        out_.Print(v, "  into->set_$field$(from.$field$);\n");
      }
    }
    out_.Print("}\n");
  }

  void Clean(const Descriptor& message) {
    out_.Print(
        "\n// For protoc's $name$, which is named by its type alone.\ntemplate <typename Message>\n"
        "void Clean$name$([[maybe_unused]] Message* message) {\n",
        "name", message.name());
    for (int i = 0; i < message.field_count(); ++i) {
      const FieldDescriptor& field = *message.field(i);
      Variables v = {{"field", field.name()}};
      if (IsMessage(field)) v["type"] = field.message_type()->name();
      if (IsMessage(field) && field.is_repeated()) {
        out_.Print(v, "  for (auto& one : *message->mutable_$field$()) Clean$type$(&one);\n");
      } else if (IsMessage(field)) {
        out_.Print(v, "  if (message->has_$field$()) Clean$type$(message->mutable_$field$());\n");
      } else if (IsText(field) && field.is_repeated()) {
        out_.Print(v,
                   "  for (auto& one : *message->mutable_$field$()) {\n"
                   "    if (!wire::IsUtf8(one)) one = wire::CleanUtf8(one);\n  }\n");
      } else if (IsText(field)) {
        out_.Print(v,
                   "  if (!wire::IsUtf8(message->$field$())) "
                   "message->set_$field$(wire::CleanUtf8(message->$field$()));\n");
      }
    }
    out_.Print("}\n");
  }

  const FileDescriptor& file_;
  const std::set<std::string> structs_;
  Printer& out_;
  std::set<const Descriptor*> done_, open_, nested_;
  std::vector<const Descriptor*> sorted_;
};

class Plugin : public google::protobuf::compiler::CodeGenerator {
 public:
  uint64_t GetSupportedFeatures() const override { return 0; }
  bool Generate(const FileDescriptor* file, const std::string& parameter, GeneratorContext* context,
                std::string* error) const override {
    std::vector<std::pair<std::string, std::string>> options;
    google::protobuf::compiler::ParseGeneratorParameter(parameter, &options);
    std::set<std::string> structs;
    for (const auto& [name, value] : options) {
      if (name != "structs") {
        *error = "unknown option " + name;
        return false;
      }
      for (size_t at = 0; at < value.size();) {
        const size_t end = value.find('+', at) == std::string::npos ? value.size() : value.find('+', at);
        structs.insert(value.substr(at, end - at));
        at = end + 1;
      }
    }
    const std::string path = file->name().substr(0, file->name().rfind('.')) + ".schema.h";
    const std::unique_ptr<google::protobuf::io::ZeroCopyOutputStream> stream(context->Open(path));
    Printer printer(stream.get(), '$');
    *error = Generator(*file, std::move(structs), &printer).Generate();
    return error->empty();
  }
};

}  // namespace

int main(int argc, char** argv) {
  const Plugin plugin;
  return google::protobuf::compiler::PluginMain(argc, argv, &plugin);
}
