// File: small_trace.h
//
// A small trace, written with protobuf's own encoder: what the schema says, not what we think.
//
//   const TraceContents contents = Read(Trace({Definitions, Statistics, End}));
#ifndef RFINJECT_CLI_TESTING_SMALL_TRACE_H_
#define RFINJECT_CLI_TESTING_SMALL_TRACE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/trace/read.h"
#include "proto/rfinject/v1/trace.pb.h"

namespace rfinject::cli::testing {

// A trace of the chunks that the functions fill.
std::vector<uint8_t> Trace(const std::vector<std::function<void(v1::Chunk&)>>& chunks);
TraceContents Read(const std::vector<uint8_t>& bytes);

v1::Name* AddName(v1::Chunk& chunk, uint32_t id, const std::string& text);

// What a process would write: one model with one layer, one launch key with two launches, two steps.
void Definitions(v1::Chunk& chunk);
// Two launches of the key, both with rf.time, whose values the caller adds.
v1::MetricStats* AddTwoLaunches(v1::Chunk& chunk);
void Statistics(v1::Chunk& chunk);
void End(v1::Chunk& chunk);

}  // namespace rfinject::cli::testing

#endif  // RFINJECT_CLI_TESTING_SMALL_TRACE_H_
