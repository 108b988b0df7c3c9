// Makes the traces of the ranks of one job, for bench/fold: the content of TRACE once for each rank, with a process
// id, a rank, a trace id and times of its own. All ranks have the first KEYS launch keys of TRACE; their statistics
// are one record each. Beside the traces lie the same rows for other programs: a CSV a rank, a line a launch key.
//
//   make_ranks TRACE KEYS RANKS FOLDER         FOLDER/traces/00000.rfx … and FOLDER/rows/00000.csv …
//   make_ranks --long TRACE KEYS CHUNKS FILE   one process's trace of so many chunks, each with all keys and 16 steps
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "cli/testing/trace_bytes.h"
#include "cli/trace/frames.h"
#include "proto/rfinject/v1/trace.pb.h"

namespace {

using namespace rfinject::cli;  // NOLINT: a tool of one file
namespace v1 = rfinject::v1;
using Bytes = std::vector<uint8_t>;

// Says in full what samples that are all the same leave out (MetricStats), so that ranks may differ in it.
void SayInFull(v1::Chunk* chunk) {
  for (v1::KeyStats& stats : *chunk->mutable_stats()) {
    for (v1::MetricStats& metric : *stats.mutable_metric()) {
      if (metric.sum() != 0 || metric.sum_high() != 0 || metric.max() != 0) continue;
      const unsigned __int128 sum = static_cast<unsigned __int128>(metric.n()) * metric.min();
      metric.set_sum(static_cast<uint64_t>(sum));
      metric.set_sum_high(static_cast<uint64_t>(sum >> 64));
      metric.set_sum_squares(static_cast<uint64_t>(sum * metric.min()));
      metric.set_sum_squares_high(static_cast<uint64_t>((sum * metric.min()) >> 64));
      metric.set_max(metric.min());
    }
  }
}

// All that a trace says, a chunk long: the first `keys` launch keys, one record of statistics each.
bool ReadWhole(const char* path, uint32_t keys, v1::Chunk* whole) {
  FileSource source;
  if (!source.Open(path).ok()) return false;
  FrameReader frames(source);
  while (frames.Next()) {
    v1::Chunk chunk;
    if (!chunk.ParseFromArray(frames.payload().data(), static_cast<int>(frames.payload().size()))) return false;
    SayInFull(&chunk);
    whole->MergeFrom(chunk);
  }
  if (!frames.status().ok()) return false;
  v1::Chunk few;
  few.Swap(whole);
  *whole = few;
  whole->clear_key();
  whole->clear_stats();
  whole->clear_trace_id();
  for (const v1::LaunchKey& key : few.key()) {
    if (key.id() <= keys) *whole->add_key() = key;
  }
  std::map<uint32_t, v1::KeyStats*> known;
  for (const v1::KeyStats& stats : few.stats()) {
    if (stats.key() > keys) continue;
    v1::KeyStats*& one = known[stats.key()];
    if (one == nullptr) *(one = whole->add_stats()) = stats;
  }
  return true;
}

// Ranks differ in their times by up to a tenth, as machines do; what they compute is the same.
uint64_t Slower(uint64_t value, uint32_t rank, uint32_t key) {
  uint64_t hash = (uint64_t{rank} << 32 | key) * 0x9E3779B97F4A7C15u;
  hash ^= hash >> 29;
  return value + value * (hash % 1000) / 10000;
}

v1::Chunk OfRank(const v1::Chunk& whole, uint32_t rank, uint32_t ranks, uint32_t time_metric) {
  v1::Chunk chunk = whole;
  chunk.add_trace_id("rank-" + std::to_string(rank));
  v1::Process& process = *chunk.mutable_run(0)->mutable_process();
  process.set_pid(1000 + rank);
  process.set_job_id("job");
  process.set_world_size(ranks);
  process.set_rank(rank);
  for (v1::KeyStats& stats : *chunk.mutable_stats()) {
    for (v1::MetricStats& metric : *stats.mutable_metric()) {
      if (metric.metric() != time_metric) continue;
      metric.set_sum(Slower(metric.sum(), rank, stats.key()));
      metric.set_min(Slower(metric.min(), rank, stats.key()));
      metric.set_max(Slower(metric.max(), rank, stats.key()));
    }
  }
  return chunk;
}

uint32_t MetricId(const v1::Chunk& chunk, const char* name) {
  for (const v1::Metric& metric : chunk.metric()) {
    if (metric.name() == name) return metric.id();
  }
  return 0;
}

bool Save(const std::filesystem::path& path, const void* data, size_t size) {
  std::ofstream file(path, std::ios::binary);
  file.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
  return file.good();
}

// What a report by kernel groups by and adds up.
std::string Rows(const v1::Chunk& chunk) {
  std::map<uint32_t, std::string> names, layers;
  for (const v1::Name& name : chunk.name()) names[name.id()] = name.text();
  for (const v1::Layer& layer : chunk.layer()) layers[layer.id()] = layer.path();
  std::map<uint32_t, const v1::KeyStats*> stats;
  for (const v1::KeyStats& one : chunk.stats()) stats[one.key()] = &one;
  std::string rows = "phase,layer,op,kernel,signature,node,launches";
  for (const v1::Metric& metric : chunk.metric()) rows += "," + metric.name();
  rows += '\n';
  for (const v1::LaunchKey& key : chunk.key()) {
    rows += std::to_string(key.phase());
    for (const std::string& text :
         {layers[key.layer()], names[key.op()], names[key.kernel()], names[key.signature()], names[key.node()]}) {
      rows += ",\"" + text + "\"";
    }
    std::map<uint32_t, uint64_t> sums;
    uint64_t launches = 0;
    if (const auto found = stats.find(key.id()); found != stats.end()) {
      launches = found->second->launches();
      for (const v1::MetricStats& metric : found->second->metric()) sums[metric.metric()] = metric.sum();
    }
    rows += "," + std::to_string(launches);
    for (const v1::Metric& metric : chunk.metric()) rows += "," + std::to_string(sums[metric.id()]);
    rows += '\n';
  }
  return rows;
}

int MakeRanks(const v1::Chunk& whole, uint32_t ranks, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder / "traces");
  std::filesystem::create_directories(folder / "rows");
  const uint32_t time_metric = MetricId(whole, "rf.time");
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const v1::Chunk chunk = OfRank(whole, rank, ranks, time_metric);
    Bytes trace = rfinject::cli::testing::EmptyTrace();
    rfinject::cli::testing::AppendFrame(trace, 0, chunk.SerializeAsString());
    char name[16];
    std::snprintf(name, sizeof name, "%05u", rank);
    const std::string rows = Rows(chunk);
    if (!Save(folder / "traces" / (name + std::string(".rfx")), trace.data(), trace.size()) ||
        !Save(folder / "rows" / (name + std::string(".csv")), rows.data(), rows.size())) {
      return 1;
    }
  }
  return 0;
}

int MakeLong(const v1::Chunk& whole, uint32_t chunks, const char* path) {
  Bytes trace = rfinject::cli::testing::EmptyTrace();
  rfinject::cli::testing::AppendFrame(trace, 0, OfRank(whole, 0, 1, 0).SerializeAsString());
  uint64_t step = 1000;
  for (uint32_t i = 1; i < chunks; ++i) {
    v1::Chunk chunk;
    *chunk.mutable_stats() = whole.stats();
    for (int k = 0; k < 16; ++k) {
      v1::Step& one = *chunk.add_step();
      one.set_index(step++);
      one.set_start_unix_ns(static_cast<int64_t>(1'700'000'000'000'000'000 + step * 50'000'000));
      one.set_duration_ns(Slower(50'000'000, i, static_cast<uint32_t>(k)));
      one.set_measured(true);
      one.set_samples(32);
      one.set_calls(1);
      one.set_kind(7);
    }
    rfinject::cli::testing::AppendFrame(trace, i, chunk.SerializeAsString());
  }
  return Save(path, trace.data(), trace.size()) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const bool is_long = argc == 6 && std::strcmp(argv[1], "--long") == 0;
  if (argc != 5 && !is_long) {
    std::fprintf(stderr, "usage: make_ranks TRACE KEYS RANKS FOLDER | make_ranks --long TRACE KEYS CHUNKS FILE\n");
    return 2;
  }
  char** const words = argv + (is_long ? 2 : 1);
  v1::Chunk whole;
  if (!ReadWhole(words[0], static_cast<uint32_t>(std::atoi(words[1])), &whole)) {
    std::fprintf(stderr, "make_ranks: %s is no whole trace\n", words[0]);
    return 1;
  }
  const auto count = static_cast<uint32_t>(std::atoi(words[2]));
  return is_long ? MakeLong(whole, count, words[3]) : MakeRanks(whole, count, words[3]);
}
