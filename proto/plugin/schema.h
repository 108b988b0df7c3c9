// File: schema.h
//
// What the plugin knows of a .proto file: its enums and messages, with the C++ names and types that the header has
// for them, and with the notes of the schema's comments. A note is a word with an @ at the beginning of a line of the
// comment that belongs to a field, an enumerator or a message:
//
//   field       @id           identifies the record in its file: it is not added up
//               @sum          added up; a sum that would not fit stays at the largest value
//               @max, @min    the largest, the smallest
//               @any          true if any is
//               @least        the text that comes first in byte order, of those that are not empty
//               @merged       a merged trace has the message even where it is empty
//               @up_to N      a repeated number with at most N elements: a std::array in the struct
//               @or_one       0 reads as 1, which the struct has by default
//   enumerator  @unknown      what a number is read as that the schema does not have; otherwise the enumerator 0
//   message     @type NAME    the struct is written by hand: wire::NAME of proto/wire/NAME.h, in small letters there
//               @numbers      its fields are numbers, read where they lie: there is an array of them, by field
//               @in_place     read where it lies in the file: there is no struct
//               @records      what a file consists of: the order of its fields is that in which records are applied
//               @as_is        the library hands it to the recorder as it is (Recorder::Keep)
//               @kept N       @as_is, and a run's list of them is all that is made of it: those with the same @id are
//                             one, and the N that come first in the order of their @id are kept. A struct that holds
//                             the lists is made of all such messages (KeptRecords)
//
// Where one field of a message says how it is added up, all but those with @id must say it. A message with @as_is or
// @kept says in its field `run` (@id) whose it is.
#ifndef RFINJECT_PROTO_PLUGIN_SCHEMA_H_
#define RFINJECT_PROTO_PLUGIN_SCHEMA_H_

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/printer.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rfinject::plugin {

struct Enum {
  std::string name;
  std::vector<std::pair<std::string, int>> constants;  // kForward, 1; the numbers count from 0
  std::string unknown;
};

enum class Rule { kReplace, kId, kSum, kMax, kMin, kAny, kLeast };

struct Message;

struct Field {
  std::string name;
  int number = 0;
  bool repeated = false, text = false, enumeration = false;
  const Message* message = nullptr;  // the type, where that is a message
  Rule rule = Rule::kReplace;
  bool merged = false;    // of @merged
  bool or_one = false;    // of @or_one
  std::string up_to;      // of @up_to
  std::string type;       // of one value in a struct: "uint64_t", "std::string", "Device"
  std::string parameter;  // of a setter: "std::string_view"
  std::string function;   // the encoder's, which leaves out the default: "Uint"
  // The struct has a member for it.
  bool member() const;
};

struct Message {
  std::string name;
  std::vector<Field> fields;  // in the order in which they stand in the schema
  std::string by_hand;        // of @type: "wire::Stat"
  std::string kept;           // of @kept: how many
  bool numbers = false, in_place = false, records = false;
  bool as_is = false;   // of @as_is or @kept
  bool nested = false;  // in another message
  int last_number = 0;

  bool has_struct() const { return by_hand.empty() && !in_place && !records; }
  // Some field says how it is added up.
  bool adds_up() const;
  // A value of this message can contradict itself, so that reading it can fail.
  bool can_be_wrong() const;
};

struct Schema {
  std::string file;
  std::vector<Enum> enums;
  std::vector<std::unique_ptr<Message>> messages;  // nested ones before those that hold them
};

// Fills `schema`. Returns an empty text, or what in the file is not understood: the schema does not use maps, oneofs,
// floats, and fixed and signed types, nor any other note.
std::string ReadSchema(const google::protobuf::FileDescriptor& file, Schema* schema);

// --- Printing the parts of NAME.schema.h (schema_plugin.cc says what they are for).

using google::protobuf::io::Printer;
using Variables = std::map<std::string, std::string>;

// What a field is called in what is printed for it.
Variables Of(const Field& field);
void PrintEnum(const Enum& type, Printer* out);
void PrintWriter(const Message& message, Printer* out);
// The struct, and the functions that take it.
void PrintStruct(const Message& message, Printer* out);
// Of a message with @numbers.
void PrintNumbers(const Message& message, Printer* out);
// Of the message with @records: in which order its fields are applied, how one of them is found, and what is made of
// all with @as_is and with @kept.
void PrintRecords(const Message& message, Printer* out);
void PrintClean(const Message& message, Printer* out);

}  // namespace rfinject::plugin

#endif  // RFINJECT_PROTO_PLUGIN_SCHEMA_H_
