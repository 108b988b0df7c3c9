#include "cli/cmd/sum_traces.h"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/cmd/progress.h"
#include "cli/cmd/streams.h"
#include "cli/import/formats.h"
#include "cli/profile/accumulator.h"
#include "cli/text/units.h"
#include "cli/trace/apply/apply.h"
#include "cli/trace/decode.h"
#include "cli/trace/encode.h"
#include "cli/trace/files.h"
#include "cli/trace/frames.h"
#include "cli/trace/read.h"
#include "cli/trace/workers.h"

namespace rfinject::cli {
namespace {

// Returns the clause that says what is used of a trace that is damaged after `chunks` good chunks.
std::string UsedInSpite(uint64_t chunks) {
  if (chunks == 0) return "; nothing before it can be used";
  if (chunks == 1) return "; the chunk before it is used";
  return absl::StrCat("; the ", Grouped(chunks), " chunks before it are used");
}

// A digest of the frames (FNV-1a, 64 bits) for traces without an id: those of versions before ids, and imports, which
// are equal to the last byte when the same file is imported again.
std::string ContentId(ByteSource& source) {
  uint64_t hash = 0xcbf29ce484222325;
  FrameReader frames(source);
  while (frames.Next()) {
    for (const uint8_t byte : frames.payload()) hash = (hash ^ byte) * 0x100000001b3;
  }
  return frames.frames() == 0 ? std::string() : absl::StrFormat("content-%016x", hash);
}

// A file that has been read and not yet decided on.
struct ReadFile {
  absl::Status opened;
  std::vector<std::string> warnings;  // what is to be said of a file that another tool wrote
  uint64_t size = 0;
  TraceRecords records;
  std::vector<std::pair<RunKey, std::vector<std::string_view>>> operators;
};

// The file as a trace, where another tool wrote it: from here on it is one. Empty where it is a trace, or nothing
// that is known.
std::string AsTrace(const std::string& path, ReadFile* file) {
  std::string trace;
  if (IsTraceFile(path)) return trace;
  const ImportFormat* format = RecogniseImport(path);
  if (format == nullptr) {
    const std::string why = WhyPackedIsNothing(path);
    if (!why.empty()) file->opened = absl::InvalidArgumentError(absl::StrCat(path, ": ", why));
    return trace;
  }
  absl::StatusOr<Imported> imported = ImportFile(*format, path, {});
  file->opened = imported.status();
  if (!imported.ok()) return trace;
  file->warnings = std::move(imported->warnings);
  file->opened = WriteTrace(imported->profile, [&trace](const void* data, size_t size) {
    trace.append(static_cast<const char*>(data), size);
    return absl::OkStatus();
  });
  return trace;
}

void ReadTrace(ByteSource& source, ReadFile* file, Decoder* decoder) {
  file->records = ReadRecords(source, decoder);
  if (!file->records.usable) return;
  std::set<std::string>& ids = file->records.applier.trace_ids();
  if (ids.empty()) {
    std::string id = ContentId(source);
    if (!id.empty()) ids.insert(std::move(id));
  }
  file->operators = file->records.applier.Operators();
}

std::unique_ptr<ReadFile> Read(const std::string& path, Decoder* decoder) {
  auto file = std::make_unique<ReadFile>();
  if (const std::string trace = AsTrace(path, file.get()); !trace.empty() || !file->opened.ok()) {
    if (!file->opened.ok()) return file;
    MemorySource source({reinterpret_cast<const uint8_t*>(trace.data()), trace.size()});
    file->size = trace.size();
    ReadTrace(source, file.get(), decoder);
    return file;
  }
  FileSource source;
  file->opened = source.Open(path);
  if (!file->opened.ok()) {
    file->opened =
        absl::Status(file->opened.code(), absl::StrCat(path, ": cannot be read: ", file->opened.message()));
    return file;
  }
  file->size = source.size();
  ReadTrace(source, file.get(), decoder);
  return file;
}

// Which operators the processes of each kind of run ran. Ranks of one job that differ in that are not doing the same
// work, and their mean is the mean of nothing. A trace that was cut may lack some, which proves nothing.
class Operators {
 public:
  void Note(const std::string& path, const ReadFile& file) {
    for (const auto& [key, names] : file.operators) {
      // Work that found no operator says nothing of which ones ran.
      std::vector<std::string_view> ran = names;
      std::erase(ran, std::string_view());
      const auto known = first_.find(key);
      if (known == first_.end()) {
        first_.emplace(key, One{path, {ran.begin(), ran.end()}});
        continue;
      }
      const std::vector<std::string>& first = known->second.ran;
      if (said_ || std::equal(first.begin(), first.end(), ran.begin(), ran.end())) continue;
      std::vector<std::string_view> only;
      const std::vector<std::string_view> before(first.begin(), first.end());
      std::set_symmetric_difference(before.begin(), before.end(), ran.begin(), ran.end(), std::back_inserter(only));
      said_ = true;
      Complain(absl::StrCat(path, " did not run the operators of ", known->second.path,
                            ", to which it is added: ", std::string(only.front()),
                            only.size() > 1 ? absl::StrCat(" and ", only.size() - 1, " more") : "",
                            only.size() > 1 ? " are" : " is", " in one of them only"));
    }
  }

 private:
  struct One {
    std::string path;
    std::vector<std::string> ran;
  };
  std::map<RunKey, One> first_;
  bool said_ = false;
};

// A sum as it is being made.
struct Target {
  Loaded loaded;
  Operators operators;
  std::map<std::string, MetricInfo> metrics;
  std::vector<std::unique_ptr<Accumulator>> shares;  // by worker; null: none yet
};

class Summing {
 public:
  Summing(const std::vector<FileToAdd>& files, size_t sums)
      : files_(files), workers_(WorkersFor(files.size())), decoders_(workers_), targets_(sums) {
    for (Target& target : targets_) target.shares.resize(workers_);
  }

  std::vector<Loaded> Sum() {
    ForEach(files_.size(), workers_, [this](size_t i, size_t worker) { ReadAndAdd(i, worker); });
    SayCopies();
    std::vector<Loaded> sums;
    for (Target& target : targets_) {
      for (std::unique_ptr<Accumulator>& share : target.shares) {
        // Metrics agree: Decide has seen to it.
        if (share != nullptr) (void)target.loaded.profile.Merge(std::move(*share).Take());
        share.reset();
      }
      sums.push_back(std::move(target.loaded));
    }
    return sums;
  }

 private:
  // Files are decided on in their order, by the worker that has read the next one. A worker that would get far ahead
  // of a long file waits, because what was read and not added yet is kept in memory.
  static constexpr size_t kMostAhead = 32;

  void ReadAndAdd(size_t i, size_t worker) {
    {
      std::unique_lock lock(mutex_);
      room_.wait(lock, [&] { return i < decided_ + kMostAhead; });
    }
    std::unique_ptr<ReadFile> file = Read(files_[i].path, &decoders_[worker]);
    std::vector<std::pair<size_t, std::unique_ptr<ReadFile>>> wanted;
    {
      const std::lock_guard lock(mutex_);
      waiting_.emplace(i, std::move(file));
      for (auto next = waiting_.begin(); next != waiting_.end() && next->first == decided_;) {
        if (Decide(files_[decided_], next->second.get())) wanted.emplace_back(decided_, std::move(next->second));
        next = waiting_.erase(next);
        progress_.Show(++decided_, files_.size());
      }
    }
    room_.notify_all();
    for (auto& [at, read] : wanted) {
      std::unique_ptr<Accumulator>& share = targets_[files_[at].sum].shares[worker];
      if (share == nullptr) share = std::make_unique<Accumulator>();
      std::move(read->records.applier).AddTo(share.get());
      read.reset();
    }
  }

  // Whether the file is to be added. Says what is wrong with it.
  bool Decide(const FileToAdd& which, ReadFile* file) {
    Target& target = targets_[which.sum];
    const std::string& path = which.path;
    const auto refuse = [&](const auto&... what) {
      target.loaded.damaged = true;
      Complain(absl::StrCat(path, ": ", what...));
      return false;
    };
    for (const std::string& warning : file->warnings) Complain(warning);
    if (!file->opened.ok()) {
      target.loaded.damaged = true;
      Complain(std::string(file->opened.message()));
      return false;
    }
    const TraceRecords& records = file->records;
    if (!records.status.ok()) {
      refuse(records.status.message(), records.usable ? UsedInSpite(records.chunks) : std::string());
    }
    if (!records.usable) return false;
    Applier& applier = file->records.applier;
    if (!applier.anything() && records.status.ok()) {
      target.loaded.empty = true;
      Complain(absl::StrCat(path, ": byte ", file->size,
                            ": the file ends before it says anything; its process ended before it measured, or has "
                            "only begun"));
    }
    // Files that hold more traces come first (FullestFirst), so a file that shares one mostly holds nothing else.
    const std::set<std::string>& ids = applier.trace_ids();
    std::string shared_with;
    size_t shared = 0;
    for (const std::string& id : ids) {
      const auto known = origins_.find(id);
      if (known == origins_.end()) continue;
      if (shared++ == 0) shared_with = known->second;
    }
    if (shared > 0 && shared == ids.size()) {
      copies_.emplace_back(path, shared_with);
      return false;
    }
    if (shared > 0) {
      return refuse("not added: ", shared, " of its ", ids.size(), " traces are in ", shared_with,
                    ", and its sums cannot be taken apart; name the traces that it was merged from");
    }
    for (const std::string& id : ids) origins_.emplace(id, path);
    target.operators.Note(path, *file);
    const MetricInfo* other = nullptr;  // the first by name
    for (const MetricInfo& metric : applier.metrics()) {
      const auto known = target.metrics.find(metric.name);
      if (known == target.metrics.end() || known->second == metric) continue;
      if (other == nullptr || metric.name < other->name) other = &metric;
    }
    if (other != nullptr) {
      return refuse("not added: ", MetricsDisagree(target.metrics.at(other->name), *other).message());
    }
    for (const MetricInfo& metric : applier.metrics()) target.metrics.try_emplace(metric.name, metric);
    if (applier.anything()) ++target.loaded.files;
    return true;
  }

  // A folder of copies is said in a line, a few are named one by one.
  void SayCopies() const {
    constexpr size_t kFew = 3;
    if (copies_.size() <= kFew) {
      for (const auto& [path, origin] : copies_) {
        Complain(absl::StrCat(path, ": not counted again: what is in it is in ", origin));
      }
      return;
    }
    const auto& [path, origin] = copies_.front();
    Complain(absl::StrCat(Grouped(copies_.size()),
                          " files are not counted again, because what is in them is in others: ", path,
                          " is the first, and what is in it is in ", origin));
  }

  const std::vector<FileToAdd>& files_;
  const size_t workers_;
  std::vector<Decoder> decoders_;  // by worker
  std::vector<Target> targets_;    // shares are their workers'; the rest is guarded by mutex_
  std::mutex mutex_;
  std::condition_variable room_;
  size_t decided_ = 0;                                       // of how many files it is known whether they count
  std::map<size_t, std::unique_ptr<ReadFile>> waiting_;      // files that were read before an earlier one was
  std::map<std::string, std::string> origins_;               // by a trace's id: the file that it was added from
  std::vector<std::pair<std::string, std::string>> copies_;  // files that add nothing, and the file that has it all
  Progress progress_{"reading trace"};
};

}  // namespace

std::vector<Loaded> SumTraces(const std::vector<FileToAdd>& files, size_t sums) { return Summing(files, sums).Sum(); }

}  // namespace rfinject::cli
