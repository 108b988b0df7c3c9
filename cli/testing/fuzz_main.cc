// Runs a libFuzzer target without libFuzzer, in every build and under every compiler: all files of the corpus as they
// are, then mutations of them, the same ones every time.
//
//   trace_fuzz_corpus FOLDER [--mutations N] [--seed S] [--every N]
//
// --every N: cuts the files at every N-th byte instead of every byte.
// Inputs are short, so memory must stay small: exit code 1 when one takes more than 64 MB. An input that ends the
// process is left in crash-SEED-NUMBER in the working folder. Every million mutations one line says how far it is.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "cli/testing/peak_memory.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
// A target whose inputs have a structure brings its own mutations.
extern "C" [[gnu::weak]] size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                                        unsigned int seed);

// A target that knows its input's schema brings inputs that break it; then every second input is one of them.
[[gnu::weak]] std::vector<uint8_t> HostileInput(std::mt19937_64& random);

namespace {

using Bytes = std::vector<uint8_t>;

// What is being run, for the handler of the signal that ends the process.
const Bytes* running = nullptr;
char crash_file[64];

void KeepInput(int signal) {
  const int file = running == nullptr ? -1 : open(crash_file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file >= 0 && write(file, running->data(), running->size()) == static_cast<ssize_t>(running->size())) {
    (void)!write(STDERR_FILENO, "the input is in ", 16);
    (void)!write(STDERR_FILENO, crash_file, strlen(crash_file));
    (void)!write(STDERR_FILENO, "\n", 1);
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

constexpr size_t kMaxStructuredGrowth = 16 << 10;

Bytes Mutate(const std::vector<Bytes>& corpus, std::mt19937_64& random) {
  Bytes bytes = corpus[random() % corpus.size()];
  if (LLVMFuzzerCustomMutator != nullptr) {
    size_t size = bytes.size();
    bytes.resize(size + kMaxStructuredGrowth);
    for (uint64_t n = 1 + random() % 3; n > 0; --n) {
      size = LLVMFuzzerCustomMutator(bytes.data(), size, bytes.size(), static_cast<unsigned int>(random()));
    }
    bytes.resize(size);
    return bytes;
  }
  for (uint64_t n = 1 + random() % 4; n > 0; --n) {
    if (bytes.empty()) bytes.push_back(0);
    const size_t at = random() % bytes.size();
    static constexpr uint8_t kInteresting[] = {0, 1, 0x7F, 0x80, 0xFF, 0x0A, 0x12, 0x3A};
    switch (random() % 8) {
      case 0:
        bytes[at] ^= static_cast<uint8_t>(1u << (random() % 8));
        break;
      case 1:
        bytes[at] = static_cast<uint8_t>(random());
        break;
      case 2:
        bytes[at] = kInteresting[random() % std::size(kInteresting)];
        break;
      case 3:
        bytes.resize(at);
        break;
      case 4:
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), static_cast<uint8_t>(random()));
        break;
      case 5:
        bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 6: {  // a piece of itself, once more
        const size_t length = std::min<size_t>(1 + random() % 64, bytes.size() - at);
        const Bytes piece(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                          bytes.begin() + static_cast<std::ptrdiff_t>(at + length));
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(random() % bytes.size()), piece.begin(),
                     piece.end());
        break;
      }
      default: {  // a piece of another one
        const Bytes& other = corpus[random() % corpus.size()];
        if (other.empty()) break;
        const size_t from = random() % other.size();
        const size_t length = std::min<size_t>(1 + random() % 256, other.size() - from);
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                     other.begin() + static_cast<std::ptrdiff_t>(from),
                     other.begin() + static_cast<std::ptrdiff_t>(from + length));
      }
    }
  }
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  const char* folder = nullptr;
  uint64_t mutations = 0, seed = 1, every = 1;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--mutations") == 0 && i + 1 < argc) {
      mutations = std::strtoull(argv[++i], nullptr, 10);
    } else if (std::strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (std::strcmp(argv[i], "--every") == 0 && i + 1 < argc) {
      every = std::max(1ull, std::strtoull(argv[++i], nullptr, 10));
    } else {
      folder = argv[i];
    }
  }
  if (folder == nullptr) return 2;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<Bytes> corpus;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  if (corpus.empty()) {
    std::fprintf(stderr, "%s: no corpus\n", folder);
    return 1;
  }
  constexpr uint64_t kMostBytes = 64u << 20;
  const rfinject::cli::testing::PeakMemory peak;
  const auto start = std::chrono::steady_clock::now();
  for (const Bytes& bytes : corpus) {
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    if (LLVMFuzzerCustomMutator != nullptr) continue;
    // What a killed process leaves.
    for (size_t size = 0; size < bytes.size(); size += every) {
      const Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
      LLVMFuzzerTestOneInput(cut.data(), cut.size());
    }
  }
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, KeepInput);
  std::mt19937_64 random(seed);
  for (uint64_t i = 0; i < mutations; ++i) {
    const Bytes bytes = HostileInput != nullptr && i % 2 == 1 ? HostileInput(random) : Mutate(corpus, random);
    std::snprintf(crash_file, sizeof crash_file, "crash-%llu-%llu", static_cast<unsigned long long>(seed),
                  static_cast<unsigned long long>(i));
    running = &bytes;
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    running = nullptr;
    if ((i + 1) % 1'000'000 == 0) {
      std::fprintf(stderr, "%llu mutations\n", static_cast<unsigned long long>(i) + 1);
    }
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("%zu files%s and %llu mutations in %.1f s, %.1f MB at the most\n", corpus.size(),
              LLVMFuzzerCustomMutator != nullptr ? ""
              : every == 1                       ? " cut at every byte"
                                                 : " cut at some bytes",
              static_cast<unsigned long long>(mutations), seconds, static_cast<double>(peak.Bytes()) / 1e6);
  return peak.Bytes() > kMostBytes ? 1 : 0;
}
