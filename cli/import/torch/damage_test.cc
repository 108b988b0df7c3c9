// A byte of a real recording is destroyed: at most its event is lost. RFINJECT_DESTROYED_BYTES says how many, one
// after the other, in each file; 10000 take some minutes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "cli/import/testing/published.h"
#include "cli/import/torch/byte_stream.h"
#include "cli/import/torch/recording.h"

namespace rfinject::cli {
namespace {

std::string Unpacked(const std::string& path) {
  std::string text, block(1 << 16, '\0');
  const absl::StatusOr<std::unique_ptr<ByteStream>> bytes = ByteStream::Open(path);
  EXPECT_TRUE(bytes.ok()) << path;
  if (!bytes.ok()) return text;
  while (const size_t got = (*bytes)->Read(block.data(), block.size())) text.append(block, 0, got);
  return text;
}

// What was read, an entry each: kind, name, beginning, and how long.
using Events = std::multiset<std::tuple<int, std::string, int64_t, int64_t>>;

Events EventsOf(const std::string& text) {
  Events events;
  const absl::StatusOr<std::unique_ptr<ByteStream>> bytes = ByteStream::OfBytes(text);
  const absl::StatusOr<TorchRecording> recording = ReadTorchRecording(**bytes);
  if (!recording.ok()) return events;
  const TorchRecording& all = *recording;
  all.all_spans.ForEach([&](uint64_t /*index*/, const TorchSpan& span) {
    events.emplace(0, all.texts[span.name], span.start, span.end - span.start);
  });
  all.all_calls.ForEach([&](uint64_t /*index*/, const TorchCall& call) {
    events.emplace(1, all.texts[call.name], call.start, call.end - call.start);
  });
  all.all_activities.ForEach([&](uint64_t /*index*/, const TorchActivity& activity) {
    events.emplace(2, all.texts[all.launches[activity.launch].name], activity.start, activity.duration);
  });
  return events;
}

TEST(DestroyedBytesTest, LoseAtMostTheirEvent) {
  const char* const given = std::getenv("RFINJECT_DESTROYED_BYTES");
  const int count = given != nullptr ? std::atoi(given) : 25;
  std::vector<std::string> files = {RFINJECT_IMPORT_TESTDATA "/h100_resnet18_step.json.gz"};
  for (const char* name : {"h100_bert_small", "v100_dlrm_rank0"}) {
    const std::string file = Published(std::string("pytorch_profiler/") + name + ".json.gz");
    if (!file.empty()) files.push_back(file);
  }
  std::mt19937_64 random(51);
  for (const std::string& file : files) {
    std::string text = Unpacked(file);
    const size_t begin = text.find("\"traceEvents\"") + 16, end = text.rfind("\"dur\"");
    const Events whole = EventsOf(text);
    ASSERT_GT(whole.size(), 500u) << file;
    for (int i = 0; i < count; ++i) {
      const size_t at = begin + random() % (end - begin);
      const char before = text[at];
      text[at] = static_cast<char>(' ' + random() % 95);
      const Events damaged = EventsOf(text);
      Events lost;
      std::set_difference(whole.begin(), whole.end(), damaged.begin(), damaged.end(),
                          std::inserter(lost, lost.end()));
      ASSERT_LE(lost.size(), 1u) << file << ", byte " << at << ": " << before << " is " << text[at];
      text[at] = before;
    }
  }
}

}  // namespace
}  // namespace rfinject::cli
