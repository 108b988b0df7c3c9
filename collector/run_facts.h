// File: run_facts.h
//
// What a process knows about itself: the Run message with its Process, Device and Policy, as plain data that the
// schema makes (proto/plugin). An empty or zero field is "not known (yet)". A new fact needs a field in trace.proto
// and the place where it becomes known: comparing, merging and writing follow from the schema.
#ifndef RFINJECT_COLLECTOR_RUN_FACTS_H_
#define RFINJECT_COLLECTOR_RUN_FACTS_H_

#include <cstdint>

#include "proto/rfinject/v1/trace.schema.h"

namespace rfinject {

using RunFacts = trace::Run;
using ProcessFacts = trace::Process;
using DeviceFacts = trace::Device;
using PolicyFacts = trace::Policy;
using SourceKind = trace::Source;
using Tier = trace::Tier;

// The values of the switches in PolicyFacts.
struct Tristate {
  enum Value : uint32_t { kUnknown = 0, kOff = 1, kOn = 2 };
};

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_RUN_FACTS_H_
