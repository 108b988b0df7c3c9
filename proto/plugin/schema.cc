#include "proto/plugin/schema.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <memory>
#include <sstream>
#include <utility>

namespace rfinject::plugin {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::SourceLocation;

using Notes = std::map<std::string, std::string>;  // and their argument

// The notes of an element's comments, which are those before it and the one behind it.
template <typename Element>
Notes NotesOf(const Element& element) {
  SourceLocation location;
  if (!element.GetSourceLocation(&location)) return {};
  Notes notes;
  std::istringstream lines(location.leading_comments + "\n" + location.trailing_comments);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word, argument;
    while (words >> word && word.rfind('@', 0) == 0) {
      argument.clear();
      if (word == "@type" || word == "@up_to" || word == "@kept") words >> argument;
      notes.emplace(word, argument);
    }
  }
  return notes;
}

// Takes `note` out of `notes`: true where it was there.
bool Take(const std::string& note, Notes* notes, std::string* argument = nullptr) {
  const auto found = notes->find(note);
  if (found == notes->end()) return false;
  if (argument != nullptr) *argument = found->second;
  notes->erase(found);
  return true;
}

std::string Unknown(const std::string& name, const Notes& left) {
  return left.empty() ? "" : name + " has a note that is not known: " + left.begin()->first;
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

std::string ReadEnum(const EnumDescriptor& type, Enum* made) {
  made->name = type.name();
  for (int i = 0; i < type.value_count(); ++i) {
    const auto& value = *type.value(i);
    if (value.number() != i) return value.full_name() + ": the numbers of an enum count from 0";
    made->constants.emplace_back(ConstantName(type, value.name()), i);
    Notes notes = NotesOf(value);
    if (Take("@unknown", &notes) || i == 0) made->unknown = made->constants.back().first;
    if (std::string error = Unknown(value.full_name(), notes); !error.empty()) return error;
  }
  return {};
}

// Fills the C++ types of `made`, which is no message. Returns false for a type that the schema does not use.
bool ReadType(const FieldDescriptor& field, Field* made) {
  static const std::map<FieldDescriptor::Type, std::pair<const char*, const char*>> kTypes = {
      {FieldDescriptor::TYPE_UINT32, {"uint32_t", "Uint"}},    {FieldDescriptor::TYPE_UINT64, {"uint64_t", "Uint"}},
      {FieldDescriptor::TYPE_INT64, {"int64_t", "Int"}},       {FieldDescriptor::TYPE_BOOL, {"bool", "Bool"}},
      {FieldDescriptor::TYPE_DOUBLE, {"double", "Double"}},    {FieldDescriptor::TYPE_BYTES, {"std::string", "Text"}},
      {FieldDescriptor::TYPE_STRING, {"std::string", "Text"}}, {FieldDescriptor::TYPE_ENUM, {"", "Uint"}}};
  const auto known = kTypes.find(field.type());
  if (known == kTypes.end()) return false;
  made->type = known->second.first;
  made->function = known->second.second;
  made->text = made->function == "Text";
  made->enumeration = field.type() == FieldDescriptor::TYPE_ENUM;
  if (made->enumeration) made->type = field.enum_type()->name();
  if (made->text) made->parameter = "std::string_view";
  return !made->repeated || made->text || (made->function == "Uint" && !made->enumeration);
}

class Reader {
 public:
  explicit Reader(Schema* schema) : schema_(*schema) {}

  // Reads nested messages first, because a writer returns theirs by value.
  std::string Read(const Descriptor& type) {
    const auto [place, is_new] = known_.try_emplace(&type, nullptr);
    if (!is_new) return place->second == nullptr ? type.full_name() + " contains itself" : "";
    if (type.nested_type_count() + type.enum_type_count() + type.oneof_decl_count() > 0) {
      return type.full_name() + " has nested types, a map or a oneof";
    }
    auto message = std::make_unique<Message>();
    message->name = type.name();
    Notes notes = NotesOf(type);
    if (std::string name; Take("@type", &notes, &name)) message->by_hand = "wire::" + name;
    message->numbers = Take("@numbers", &notes);
    message->in_place = Take("@in_place", &notes);
    message->records = Take("@records", &notes);
    message->as_is = Take("@as_is", &notes);
    if (Take("@kept", &notes, &message->kept)) message->as_is = true;
    if (std::string error = Unknown(type.full_name(), notes); !error.empty()) return error;
    for (int i = 0; i < type.field_count(); ++i) {
      if (std::string error = Read(*type.field(i), message.get()); !error.empty()) return error;
    }
    if (std::string error = Check(type, *message); !error.empty()) return error;
    known_[&type] = message.get();
    schema_.messages.push_back(std::move(message));
    return {};
  }

 private:
  std::string Read(const FieldDescriptor& field, Message* message) {
    Field& made = message->fields.emplace_back();
    made.name = field.name();
    made.number = field.number();
    made.repeated = field.is_repeated();
    message->last_number = std::max(message->last_number, field.number());
    if (field.type() == FieldDescriptor::TYPE_MESSAGE) {
      if (std::string error = Read(*field.message_type()); !error.empty()) return error;
      Message* const nested = known_.at(field.message_type());
      nested->nested = true;
      made.message = nested;
      made.type = nested->by_hand.empty() ? nested->name : nested->by_hand;
    } else if (!ReadType(field, &made)) {
      return field.full_name() + " has a type that writers are not made for";
    }
    if (made.parameter.empty()) made.parameter = made.type;
    static const std::pair<const char*, Rule> kRules[] = {{"@id", Rule::kId},   {"@sum", Rule::kSum},
                                                          {"@max", Rule::kMax}, {"@min", Rule::kMin},
                                                          {"@any", Rule::kAny}, {"@least", Rule::kLeast}};
    Notes notes = NotesOf(field);
    Take("@up_to", &notes, &made.up_to);
    made.merged = Take("@merged", &notes);
    made.or_one = Take("@or_one", &notes);
    for (const auto& [note, rule] : kRules) {
      if (Take(note, &notes)) made.rule = rule;
    }
    if (!made.up_to.empty() && (!made.repeated || made.text || made.message != nullptr)) {
      return field.full_name() + ": @up_to is for repeated numbers";
    }
    return Unknown(field.full_name(), notes);
  }

  static std::string Check(const Descriptor& type, const Message& message) {
    const bool of_run = std::any_of(message.fields.begin(), message.fields.end(), [](const Field& field) {
      return field.name == "run" && field.type == "uint32_t" && field.rule == Rule::kId;
    });
    if (message.as_is && !(of_run && message.has_struct())) return type.full_name() + ".run does not say whose it is";
    for (const Field& field : message.fields) {
      const std::string name = type.full_name() + "." + field.name;
      const bool number = field.message == nullptr && !field.text && !field.enumeration;
      if (message.numbers && (!number || field.repeated)) return name + " is no number, as @numbers says";
      if (!message.adds_up() || field.rule == Rule::kId) continue;
      if (field.rule == Rule::kReplace) return name + " does not say how it is added up";
      const bool right = field.rule == Rule::kLeast ? field.text
                         : field.message != nullptr
                             ? field.rule == Rule::kSum
                             : field.rule == (field.type == "bool" ? Rule::kAny : field.rule) && number;
      if (!right || field.repeated) return name + " cannot be added up as it says";
    }
    return {};
  }

  Schema& schema_;
  std::map<const Descriptor*, Message*> known_;  // null while it is read
};

}  // namespace

bool Field::member() const { return message == nullptr || message->has_struct() || !message->by_hand.empty(); }

bool Message::adds_up() const {
  return std::any_of(fields.begin(), fields.end(),
                     [](const Field& field) { return field.rule != Rule::kReplace && field.rule != Rule::kId; });
}

bool Message::can_be_wrong() const {
  return !by_hand.empty() || std::any_of(fields.begin(), fields.end(), [](const Field& field) {
    return !field.up_to.empty() || (field.message != nullptr && field.member() && field.message->can_be_wrong());
  });
}

std::string ReadSchema(const FileDescriptor& file, Schema* schema) {
  schema->file = file.name();
  for (int i = 0; i < file.enum_type_count(); ++i) {
    if (std::string error = ReadEnum(*file.enum_type(i), &schema->enums.emplace_back()); !error.empty()) return error;
  }
  Reader reader(schema);
  for (int i = 0; i < file.message_type_count(); ++i) {
    if (std::string error = reader.Read(*file.message_type(i)); !error.empty()) return error;
  }
  return {};
}

}  // namespace rfinject::plugin
