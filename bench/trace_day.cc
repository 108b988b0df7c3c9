// What traces would be after a day of the job that they are the beginning of: their chunks at the distances of
// collector/chunk_schedule.h, their steps one by one as long as the recorder writes them so.
//
//   trace_day TRACE.rfx...
#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "collector/chunk_schedule.h"
#include "collector/settings.h"
#include "proto/rfinject/v1/trace.pb.h"
#include "proto/wire/framing.h"

namespace rfinject {
namespace {

constexpr double kDay = 86400;
constexpr uint64_t kSingleSteps = 1 << 16;  // of trace_recorder.cc

struct Chunk {
  uint64_t bytes = 0;       // without steps
  uint64_t step_bytes = 0;  // of `steps`
  uint64_t steps = 0;
  uint64_t step_ns = 0;
};

int Describe(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<Chunk> chunks;
  size_t keys = 0;
  for (size_t at = wire::kFileHeaderSize; at + wire::kFrameHeaderSize <= bytes.size();) {
    uint8_t begin[wire::kFrameHeaderSize];
    std::memcpy(begin, bytes.data() + at, sizeof begin);
    wire::FrameHeader header;
    v1::Chunk chunk;
    if (wire::DecodeFrameHeader(begin, static_cast<uint32_t>(chunks.size()), &header) != wire::FrameStatus::kOk ||
        header.length > bytes.size() - at - sizeof begin ||
        !chunk.ParseFromArray(bytes.data() + at + sizeof begin, static_cast<int>(header.length))) {
      break;
    }
    Chunk one;
    for (const v1::Step& step : chunk.step()) one.step_ns += step.duration_ns();
    one.steps = static_cast<uint64_t>(chunk.step_size());
    keys += static_cast<size_t>(chunk.key_size());
    chunk.clear_step();
    one.bytes = wire::kFrameHeaderSize + chunk.ByteSizeLong();
    one.step_bytes = wire::kFrameHeaderSize + header.length - one.bytes;
    chunks.push_back(one);
    at += wire::kFrameHeaderSize + header.length;
  }
  // The first third is the program's beginning, and the last chunk its end.
  if (chunks.size() < 6) {
    fprintf(stderr, "trace_day: %s: %zu chunks; a run of some ten seconds is wanted\n", path, chunks.size());
    return 1;
  }
  Chunk steady;
  const size_t first = chunks.size() / 3, count = chunks.size() - 1 - first;
  for (size_t i = first; i < first + count; ++i) {
    steady.bytes += chunks[i].bytes;
    steady.step_bytes += chunks[i].step_bytes;
    steady.steps += chunks[i].steps;
    steady.step_ns += chunks[i].step_ns;
  }
  const uint64_t chunk_bytes = steady.bytes / count;
  const double steps_a_second =
      steady.step_ns > 0 ? static_cast<double>(steady.steps) * 1e9 / static_cast<double>(steady.step_ns) : 0;
  const double step_bytes =
      steady.steps > 0 ? static_cast<double>(steady.step_bytes) / static_cast<double>(steady.steps) : 0;
  const double singly = std::min(steps_a_second * kDay, static_cast<double>(kSingleSteps)) * step_bytes;
  const uint64_t limit = Settings{}.max_size_mb * 1'000'000;
  uint64_t day = static_cast<uint64_t>(singly), written = 0;
  for (int64_t age = 0; age < static_cast<int64_t>(kDay * 1e9); ++written) {
    day += chunk_bytes;
    age += ChunkDistance(age, day, chunk_bytes, limit);
  }
  printf("%-32s %6zu keys %9" PRIu64 " bytes a chunk %8.1f steps/s %5.1f bytes a step %8.1f MB a day in %" PRIu64
         " chunks\n",
         path, keys, chunk_bytes, steps_a_second, step_bytes, static_cast<double>(day) / 1e6, written);
  return 0;
}

}  // namespace
}  // namespace rfinject

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: trace_day TRACE.rfx...\n");
    return 2;
  }
  int code = 0;
  for (int i = 1; i < argc; ++i) code |= rfinject::Describe(argv[i]);
  return code;
}
