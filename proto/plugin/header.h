// File: header.h
//
// Prints the parts of NAME.schema.h (schema_plugin.cc says what they are for).
#ifndef RFINJECT_PROTO_PLUGIN_HEADER_H_
#define RFINJECT_PROTO_PLUGIN_HEADER_H_

#include <google/protobuf/io/printer.h>

#include "proto/plugin/schema.h"

namespace rfinject::plugin {

using google::protobuf::io::Printer;

void PrintEnum(const Enum& type, Printer* out);
void PrintWriter(const Message& message, Printer* out);
// The struct, and the functions that take it.
void PrintStruct(const Message& message, Printer* out);
// Of a message with @numbers.
void PrintNumbers(const Message& message, Printer* out);
// Of the message with @records: in which order its fields are applied, and how one of them is found.
void PrintRecords(const Message& message, Printer* out);
void PrintClean(const Message& message, Printer* out);

}  // namespace rfinject::plugin

#endif  // RFINJECT_PROTO_PLUGIN_HEADER_H_
