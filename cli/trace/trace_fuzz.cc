// Feeds bytes to the reader as a trace, and to everything that comes after it. Whatever they are, it must end soon,
// within bounded memory, and what was read must be a profile that can be merged, written and read again.
//
// The first byte chooses what the rest is: an even one, a file as it lies on disk; an odd one, payloads (a 16-bit
// length before each) that are put into frames with right checksums, for no fuzzer finds its way through a checksum.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "cli/profile/profile.h"
#include "cli/report/fold.h"
#include "cli/report/machine.h"
#include "cli/testing/hostile_message.h"
#include "cli/testing/trace_bytes.h"
#include "cli/trace/damage.h"
#include "cli/trace/dump.h"
#include "cli/trace/fields.h"
#include "cli/trace/read.h"
#include "cli/trace/step_spans.h"
#include "proto/rfinject/v1/trace.pb.h"

namespace {

using namespace rfinject::cli;  // NOLINT: the harness is all there is here

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "trace_fuzz: %s\n", what);
  std::abort();
}

std::vector<uint8_t> AsTrace(const uint8_t* data, size_t size) {
  if (size == 0) return {};
  if (data[0] % 2 == 0) return {data + 1, data + size};
  std::vector<uint8_t> trace = testing::EmptyTrace();
  uint32_t sequence = 0;
  for (size_t at = 1; at + 2 <= size;) {
    size_t length = static_cast<size_t>(data[at]) | static_cast<size_t>(data[at + 1]) << 8;
    at += 2;
    if (length > size - at) length = size - at;
    testing::AppendFrame(trace, sequence++, {data + at, length});
    at += length;
  }
  return trace;
}

}  // namespace

// For fuzz_main.cc: one to three payloads that break the schema in places of their own.
std::vector<uint8_t> HostileInput(std::mt19937_64& random) {
  std::vector<uint8_t> input = {1};
  for (uint64_t n = 1 + random() % 3; n > 0; --n) {
    const std::string payload = testing::HostileMessage(*rfinject::v1::Chunk::descriptor(), 0xFFFF, random);
    input.push_back(static_cast<uint8_t>(payload.size()));
    input.push_back(static_cast<uint8_t>(payload.size() >> 8));
    input.insert(input.end(), payload.begin(), payload.end());
  }
  return input;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<uint8_t> trace = AsTrace(data, size);
  MemorySource source(trace);
  TraceContents contents = ReadTrace(source, 64u << 20);
  if (!contents.status.ok()) {
    if (DamageOffset(contents.status) > trace.size()) Fail("damage beyond the end of the file");
    if (DamageReason(contents.status).empty()) Fail("damage without a reason");
  }
  if (!contents.usable) {
    if (contents.status.ok() || contents.chunks != 0 || !contents.profile.runs.empty()) Fail("used what is no trace");
    return 0;
  }
  MemorySource steps(trace);
  if (ReadStepSpans(steps).size() > kMostStepSpans) Fail("more steps than there may be");
  // What `dump` does with the same bytes.
  FrameReader frames(source);
  while (frames.Next()) {
    FieldCursor cursor(frames.payload(), frames.payload_offset());
    for (Field record; cursor.Next(&record);) {
      if (RecordText(record).empty()) Fail("a record without a text");
    }
  }
  if (contents.chunks > 0 && frames.frames() < contents.chunks) Fail("used more chunks than there are frames");

  for (const Report& report : FoldProfile(contents.profile, MachineFor, {.by = By::kLayer})) {
    for (const Alarm& alarm : report.alarms) {
      if (alarm.id == "R006") Fail("the rows of a report do not add up to its total");
    }
  }
  const std::vector<uint8_t> written = testing::WrittenTrace(contents.profile);
  if (written.empty()) Fail("a profile that was read cannot be written");
  MemorySource again(written);
  const TraceContents second = ReadTrace(again);
  if (!second.status.ok()) Fail(("what was written is refused: " + second.status.ToString()).c_str());
  // Parents that form a circle are cut by writing; what is left must come back as it is.
  const std::vector<uint8_t> rewritten = testing::WrittenTrace(second.profile);
  MemorySource third(rewritten);
  if (ReadTrace(third).profile != second.profile) Fail("a profile changes when it is written and read");
  return 0;
}
