// Structs, and the functions that compare, read, write and merge them.
#include <algorithm>
#include <map>
#include <string>

#include "proto/plugin/schema.h"

namespace rfinject::plugin {
namespace {

bool IsList(const Field& field) { return field.repeated && field.up_to.empty(); }
bool IsByHand(const Field& field) { return field.message != nullptr && !field.message->by_hand.empty(); }

void PrintMembers(const Message& message, Printer* out) {
  out->Print("\nstruct $name$ {\n", "name", message.name);
  for (const Field& field : message.fields) {
    if (!field.member()) continue;
    if (IsList(field)) {
      out->Print(Of(field), "  std::vector<$type$> $field$;\n");
    } else if (field.repeated) {
      out->Print(Of(field), "  std::array<$type$, $up_to$> $field${};\n");
    } else {
      out->Print(Of(field),
                 field.text || field.message != nullptr ? "  $type$ $field$;\n" : "  $type$ $field${$default$};\n");
    }
  }
  out->Print("  friend bool operator==(const $name$&, const $name$&) = default;\n", "name", message.name);
  // What adds up has no order, and so has none what lists it.
  const bool lists = std::any_of(message.fields.begin(), message.fields.end(), [](const Field& field) {
    return IsList(field) && field.message != nullptr && field.message->adds_up();
  });
  if (!message.adds_up() && !lists) {
    out->Print("  friend auto operator<=>(const $name$&, const $name$&) = default;\n", "name", message.name);
  }
  out->Print("};\n");
}

void PrintVisits(const Message& message, Printer* out) {
  out->Print(
      "\n// Calls visit(a.field, b.field) for every field.\n"
      "template <typename Visit>\nvoid ForEachPair(const $name$& a, const $name$& b, Visit visit) {\n",
      "name", message.name);
  for (const Field& field : message.fields) {
    if (field.member()) out->Print(Of(field), "  visit(a.$field$, b.$field$);\n");
  }
  out->Print(
      "}\n"
      "// Calls visit(name, &field) for every field, by its name in the schema.\n",
      "name", message.name);
  for (const char* constant : {"", "const "}) {
    out->Print("template <typename Visit>\nvoid ForEachField($const$$name$* message, Visit visit) {\n", "const",
               constant, "name", message.name);
    for (const Field& field : message.fields) {
      if (field.member()) out->Print(Of(field), "  visit(\"$field$\", &message->$field$);\n");
    }
    out->Print("}\n");
  }
}

void PrintIds(const Message& message, Printer* out) {
  std::string forget, same;
  for (const Field& field : message.fields) {
    if (field.rule != Rule::kId) continue;
    forget += "  message->" + field.name + " = {};\n";
    same += (same.empty() ? "" : " &&\n         ") + ("(again." + field.name) + " == " + field.type + "{} || again." +
            field.name + " == known." + field.name + ")";
  }
  if (same.empty()) return;
  out->Print(
      "\n// Makes the fields that identify the message in its file what they are by default.\n"
      "inline void ForgetIds($name$* message) {\n$forget$}\n"
      "// Whether `again` can be more of what is known, because what identifies it is the same, or is left out.\n"
      "inline bool SameIds(const $name$& again, const $name$& known) {\n  return $same$;\n}\n",
      "name", message.name, "forget", forget, "same", same);
}

void PrintUpdate(const Message& message, Printer* out) {
  out->Print(
      "\n// Puts the set fields of `from` into `into`, as a later record does. Repeated messages are matched by "
      "their\n"
      "// first field, and other repeated fields are replaced.\n"
      "inline void Update(const $name$& from, $name$* into) {\n",
      "name", message.name);
  for (const Field& field : message.fields) {
    if (!field.member()) continue;
    if (field.message != nullptr && field.repeated) {
      out->Print(Of(field),
                 "  for (const $type$& one : from.$field$) {\n"
                 "    $type$* known = nullptr;\n"
                 "    for ($type$& other : into->$field$) {\n"
                 "      if (other.$key$ == one.$key$) known = &other;\n"
                 "    }\n"
                 "    if (known == nullptr) known = &into->$field$.emplace_back();\n"
                 "    Update(one, known);\n"
                 "  }\n");
    } else if (field.message != nullptr && !IsByHand(field)) {
      out->Print(Of(field), "  Update(from.$field$, &into->$field$);\n");
    } else if (field.text || IsList(field)) {
      out->Print(Of(field), "  if (!from.$field$.empty()) into->$field$ = from.$field$;\n");
    } else {
      out->Print(Of(field),
                 "  if (from.$field$ != decltype(from.$field$){$default$}) into->$field$ = from.$field$;\n");
    }
  }
  out->Print("}\n");
}

void PrintMerge(const Message& message, Printer* out) {
  static const std::map<Rule, const char*> kAdd = {
      {Rule::kSum, "  wire::SaturatingAdd(&into->$field$, from.$field$);\n"},
      {Rule::kMax, "  if (into->$field$ < from.$field$) into->$field$ = from.$field$;\n"},
      {Rule::kMin, "  if (from.$field$ < into->$field$) into->$field$ = from.$field$;\n"},
      {Rule::kAny, "  into->$field$ = into->$field$ || from.$field$;\n"},
      {Rule::kLeast,
       "  if (into->$field$.empty() || (!from.$field$.empty() && from.$field$ < into->$field$)) {\n"
       "    into->$field$ = from.$field$;\n  }\n"}};
  if (!message.adds_up() && message.kept.empty()) return;
  out->Print(
      "\n// Adds what another process says, as the schema has it. The order does not matter.\n"
      "inline void Merge([[maybe_unused]] const $name$& from, [[maybe_unused]] $name$* into) {\n",
      "name", message.name);
  for (const Field& field : message.fields) {
    const auto found = kAdd.find(field.rule);
    if (found == kAdd.end()) continue;
    out->Print(Of(field), IsByHand(field)            ? "  into->$field$.Merge(from.$field$);\n"
                          : field.message != nullptr ? "  Merge(from.$field$, &into->$field$);\n"
                                                     : found->second);
  }
  out->Print("}\n");
}

void PrintKept(const Message& message, Printer* out) {
  if (message.kept.empty()) return;
  std::string a, b;
  for (const Field& field : message.fields) {
    if (field.rule != Rule::kId || field.name == "run") continue;
    a += (a.empty() ? "a." : ", a.") + field.name;
    b += (b.empty() ? "b." : ", b.") + field.name;
  }
  out->Print(
      "\n// Whether `a` comes before `b` in a run's list of them. Neither before the other: they are one.\n"
      "inline bool ComesBefore(const $name$& a, const $name$& b) {\n  return std::tie($a$) < std::tie($b$);\n}\n"
      "template <>\ninline constexpr size_t kMostKept<$name$> = $most$;\n",
      "name", message.name, "a", a, "b", b, "most", message.kept);
}

void PrintWrite(const Message& message, Printer* out) {
  const bool merged =
      std::any_of(message.fields.begin(), message.fields.end(), [](const Field& f) { return f.merged; });
  const Variables v = {{"name", message.name},
                       {"parameter", merged ? ", bool merged = false" : ""},
                       {"argument", merged ? ", merged" : ""}};
  out->Print(
      v,
      "\n// Writes the fields in which `now` differs from `before`; of repeated ones, that differ anywhere, all.\n"
      "inline void WriteChanges(const $name$& before, const $name$& now, $name$Writer* out$parameter$) {\n");
  for (const Field& field : message.fields) {
    if (!field.member()) continue;
    out->Print(Of(field), field.merged ? "  if (merged || before.$field$ != now.$field$) "
                                       : "  if (before.$field$ != now.$field$) ");
    if (field.message == nullptr) {
      out->Print(Of(field), field.text && field.repeated
                                ? "{\n    for (const std::string& one : now.$field$) out->add_$field$(one);\n  }\n"
                                : "out->set_$field$(now.$field$);\n");
    } else if (field.repeated) {
      out->Print(Of(field),
                 "{\n    for (const $type$& one : now.$field$) {\n"
                 "      $message$Writer writer = out->begin_$field$();\n"
                 "      WriteChanges($type${}, one, &writer);\n    }\n  }\n");
    } else {
      out->Print(Of(field), "{\n    $message$Writer writer = out->begin_$field$();\n");
      out->Print(Of(field), IsByHand(field) ? "    now.$field$.Write(&writer);\n  }\n"
                                            : "    WriteChanges(before.$field$, now.$field$, &writer);\n  }\n");
    }
  }
  out->Print(v,
             "}\ninline void Write(const $name$& message, $name$Writer* out$parameter$) {\n"
             "  WriteChanges($name${}, message, out$argument$);\n}\n");
}

// Reads protoc's class, as a template, so that the header does not need that class.
void PrintRead(const Message& message, Printer* out) {
  out->Print(
      "\n// Fills `into` from protoc's class. Returns null, or what contradicts itself there.\n"
      "template <typename Message>\n[[nodiscard]] const char* Read(const Message& from, $name$* into) {\n",
      "name", message.name);
  for (const Field& field : message.fields) {
    if (!field.member()) continue;
    const bool wrong = field.message != nullptr && field.message->can_be_wrong();
    Variables v = Of(field);
    v["begin"] = wrong ? "if (const char* wrong = " : "(void)";
    v["end"] = wrong ? "; wrong != nullptr) return wrong" : "";
    if (field.message != nullptr && field.repeated) {
      out->Print(v,
                 "  into->$field$.clear();\n"
                 "  for (const auto& one : from.$field$()) $begin$Read(one, &into->$field$.emplace_back())$end$;\n");
    } else if (IsByHand(field)) {
      out->Print(v, "  $begin$into->$field$.Read(from.$field$())$end$;\n");
    } else if (field.message != nullptr) {
      out->Print(v, "  $begin$Read(from.$field$(), &into->$field$)$end$;\n");
    } else if (IsList(field)) {
      out->Print(v, "  into->$field$.assign(from.$field$().begin(), from.$field$().end());\n");
    } else if (field.repeated) {
      out->Print(v,
                 "  if (from.$field$_size() > $up_to$) return \"$field$ has more than $up_to$ elements\";\n"
                 "  std::copy(from.$field$().begin(), from.$field$().end(), into->$field$.begin());\n");
    } else if (field.or_one) {
      out->Print(v, "  into->$field$ = from.$field$() == 0 ? 1 : from.$field$();\n");
    } else if (field.enumeration) {
      out->Print(v, "  FromNumber(static_cast<int>(from.$field$()), &into->$field$);\n");
    } else {
      out->Print(v, "  into->$field$ = static_cast<decltype(into->$field$)>(from.$field$());\n");
    }
  }
  out->Print("  return nullptr;\n}\n");
}

}  // namespace

void PrintStruct(const Message& message, Printer* out) {
  PrintMembers(message, out);
  PrintVisits(message, out);
  PrintIds(message, out);
  PrintUpdate(message, out);
  PrintMerge(message, out);
  PrintKept(message, out);
  PrintWrite(message, out);
  PrintRead(message, out);
}

}  // namespace rfinject::plugin
