// File: message_mutator.h
//
// Changes a protobuf message at random, such that it stays a valid message: a fuzzer needs that to get past the
// parser.
#ifndef RFINJECT_CLI_TESTING_MESSAGE_MUTATOR_H_
#define RFINJECT_CLI_TESTING_MESSAGE_MUTATOR_H_

#include <google/protobuf/message.h>

#include <random>

namespace rfinject::cli::testing {

// Makes one to four changes anywhere in `message`: sets or clears a field, adds, doubles, removes or swaps elements,
// copies a value from another field of the same type. Numbers are often small (so that they are ids of something),
// else limits of their types; texts are often names that mean something to a reader of traces, or to a terminal, a
// browser or a spreadsheet. The same state of `random` gives the same changes.
void MutateMessage(google::protobuf::Message* message, std::mt19937_64& random);

}  // namespace rfinject::cli::testing

#endif  // RFINJECT_CLI_TESTING_MESSAGE_MUTATOR_H_
