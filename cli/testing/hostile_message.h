// File: hostile_message.h
//
// Makes bytes that follow a message's schema just far enough to get to where it is decoded, and break it there.
// Changing bytes at random seldom gives a known field of another wire type, or a long text where a message should be.
#ifndef RFINJECT_CLI_TESTING_HOSTILE_MESSAGE_H_
#define RFINJECT_CLI_TESTING_HOSTILE_MESSAGE_H_

#include <google/protobuf/descriptor.h>

#include <cstddef>
#include <random>
#include <string>

namespace rfinject::cli::testing {

// A message of `type` in wire format with at most `most` bytes: its fields in any order, repeated, with their own or
// any other wire type, whose content is their own, another message's of the same file, random, nested 200 deep, or 0,
// 1 or up to 2^16 bytes long. The same state of `random` gives the same bytes.
std::string HostileMessage(const google::protobuf::Descriptor& type, size_t most, std::mt19937_64& random);

}  // namespace rfinject::cli::testing

#endif  // RFINJECT_CLI_TESTING_HOSTILE_MESSAGE_H_
