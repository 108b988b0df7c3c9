// protoc-gen-rfinject: makes NAME.schema.h of NAME.proto, which is the schema for code that must not link
// libprotobuf. The header holds, in namespace rfinject::trace:
//
//   * each enum as an `enum class`: PHASE_FORWARD of `enum Phase` becomes Phase::kForward;
//   * each message as a writer over proto/wire/encoder.h: RunWriter has set_… for single fields, add_… for repeated
//     texts, set_… with a span for repeated numbers, and begin_…, which returns the writer of a nested message. It
//     writes fields in the order in which it is called, and structs are written in the order of the schema;
//   * each message as a plain struct with comparison, and with functions for it: Read from protoc's class, Write and
//     WriteChanges to its writer, Update by a later record, Merge with another process's, and some for its ids and
//     texts. Which message has no struct, and how fields are merged, the notes in the schema's comments say
//     (schema.h);
//   * the order in which the records of a file are applied, and UseRecord;
//   * of all records that are merely kept, the lists of a run (KeptRecords), and a variant of all that the library
//     hands over as they are (RunRecord);
//   * CleanChunk and so on, which make every text of protoc's class valid UTF-8.
#include <google/protobuf/compiler/code_generator.h>
#include <google/protobuf/compiler/plugin.h>
#include <google/protobuf/io/zero_copy_stream.h>

#include <cctype>
#include <memory>
#include <string>

#include "proto/plugin/schema.h"

namespace rfinject::plugin {
namespace {

void PrintBegin(const Schema& schema, Printer* out) {
  out->Print(
      "// Made by protoc-gen-rfinject (proto/plugin/schema_plugin.cc) from $file$. Do not edit.\n"
      "#ifndef RFINJECT_TRACE_SCHEMA_H_\n#define RFINJECT_TRACE_SCHEMA_H_\n\n"
      "#include <algorithm>\n#include <array>\n#include <compare>\n#include <cstddef>\n#include <cstdint>\n"
      "#include <span>\n#include <string>\n#include <string_view>\n#include <tuple>\n#include <type_traits>\n"
      "#include <variant>\n#include <vector>\n\n"
      "#include \"proto/wire/encoder.h\"\n#include \"proto/wire/saturating_add.h\"\n",
      "file", schema.file);
  for (const auto& message : schema.messages) {
    if (message->by_hand.empty()) continue;
    std::string header = message->by_hand.substr(message->by_hand.rfind(':') + 1);
    for (char& c : header) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    out->Print("#include \"proto/wire/$header$.h\"\n", "header", header);
  }
  out->Print(
      "#include \"proto/wire/text.h\"\n\nnamespace rfinject::trace {\n\n"
      "// How many records of a kind are kept of a run.\n"
      "template <typename Record>\ninline constexpr size_t kMostKept = 0;\n"
      "// What the list of such records is called in the schema.\n"
      "template <typename Record>\ninline constexpr std::string_view kKeptName;\n\n"
      "// Calls visit(&text) for every text of the message itself.\n"
      "template <typename Record, typename Visit>\nvoid ForEachText(Record* record, Visit visit) {\n"
      "  ForEachField(record, [&visit](std::string_view, auto* field) {\n"
      "    using Field = std::remove_reference_t<decltype(*field)>;\n"
      "    if constexpr (std::is_same_v<Field, std::string>) visit(field);\n"
      "    if constexpr (std::is_same_v<Field, std::vector<std::string>>) {\n"
      "      for (std::string& one : *field) visit(&one);\n    }\n  });\n}\n");
}

class Plugin : public google::protobuf::compiler::CodeGenerator {
 public:
  bool Generate(const google::protobuf::FileDescriptor* file, const std::string& parameter,
                google::protobuf::compiler::GeneratorContext* context, std::string* error) const override {
    Schema schema;
    *error = parameter.empty() ? ReadSchema(*file, &schema) : "unknown option " + parameter;
    if (!error->empty()) return false;
    const std::string path = file->name().substr(0, file->name().rfind('.')) + ".schema.h";
    const std::unique_ptr<google::protobuf::io::ZeroCopyOutputStream> stream(context->Open(path));
    Printer out(stream.get(), '$');
    PrintBegin(schema, &out);
    for (const Enum& type : schema.enums) PrintEnum(type, &out);
    for (const auto& message : schema.messages) PrintWriter(*message, &out);
    for (const auto& message : schema.messages) {
      if (message->has_struct()) PrintStruct(*message, &out);
      if (message->numbers) PrintNumbers(*message, &out);
      if (message->records) PrintRecords(*message, &out);
      PrintClean(*message, &out);
    }
    out.Print("\n}  // namespace rfinject::trace\n\n#endif  // RFINJECT_TRACE_SCHEMA_H_\n");
    return true;
  }
};

}  // namespace
}  // namespace rfinject::plugin

int main(int argc, char** argv) {
  const rfinject::plugin::Plugin plugin;
  return google::protobuf::compiler::PluginMain(argc, argv, &plugin);
}
