// File: fake_recorder.h
//
// A Recorder that keeps what it is told, for tests of sources. Thread-safe, no files, no threads.
#ifndef RFINJECT_COLLECTOR_TESTING_FAKE_RECORDER_H_
#define RFINJECT_COLLECTOR_TESTING_FAKE_RECORDER_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "collector/record/graph_launches.h"
#include "collector/recorder.h"
#include "collector/run_facts.h"
#include "collector/testing/null_recorder.h"

namespace rfinject::testing {

class FakeRecorder : public NullRecorder {
 public:
  struct Diagnostic {
    Severity severity;
    std::string id, text, remedy;
  };

  uint32_t Intern(std::string_view text) noexcept override {
    const std::lock_guard lock(mutex_);
    ++interned_;
    const auto [at, added] = ids_.try_emplace(std::string(text), static_cast<uint32_t>(names_.size() + 1));
    if (added) names_.push_back(at->first);
    return at->second;
  }
  uint32_t DefineMetric(std::string_view name, std::string_view, double) noexcept override {
    const std::lock_guard lock(mutex_);
    const auto [at, added] = metrics_.try_emplace(std::string(name), next_metric_);
    next_metric_ += added ? 1 : 0;
    return at->second;
  }
  uint32_t DefineModel(const ModelDefinition&) noexcept override { return 1; }
  uint32_t DefineLayer(const LayerDefinition&) noexcept override { return 1; }
  void UpdateFacts(const RunFacts& facts) noexcept override {
    const std::lock_guard lock(mutex_);
    facts_.push_back(facts);
  }
  void Record(const LaunchRecord& record) noexcept override {
    const std::lock_guard lock(mutex_);
    if (record.launches == LaunchRecord::kGraph) {
      graphs_.Launch(record.identity.kernel, 0, [this](const LaunchRecord& one) { records_.push_back(one); });
    } else {
      records_.push_back(record);
    }
  }
  void RecordLaunch(const LaunchIdentity& identity, uint32_t launches) noexcept override {
    LaunchRecord record;
    record.identity = identity;
    record.launches = launches;
    Record(record);
  }
  uint32_t DefineGraph(std::span<const GraphMember> members, const LaunchIdentity& whole,
                       bool settled) noexcept override {
    const std::lock_guard lock(mutex_);
    return graphs_.Define(members, whole, settled);
  }
  void SettleGraph(uint32_t graph, bool by_members) noexcept override {
    const std::lock_guard lock(mutex_);
    graphs_.Settle(graph, by_members, [this](uint64_t, const LaunchRecord& one) { records_.push_back(one); });
  }
  void ForgetGraph(uint32_t graph) noexcept override {
    const std::lock_guard lock(mutex_);
    graphs_.Settle(graph, false, [this](uint64_t, const LaunchRecord& one) { records_.push_back(one); });
    graphs_.Erase(graph);
  }
  void Add(const LaunchRecord& record) noexcept override { Record(record); }
  void EndStep(uint64_t) noexcept override { ++step_; }
  void NoteMemory(uint64_t in_use, uint64_t peak) noexcept override { memory_.push_back({in_use, peak}); }
  void AddSamples(const LaunchRecord& record, uint64_t) noexcept override { Record(record); }
  void Keep(trace::RunRecord record) noexcept override {
    const std::lock_guard lock(mutex_);
    kept_.push_back(std::move(record));
  }
  void MarkArmed(uint32_t group) noexcept override { armed_.push_back({step_, group}); }
  uint64_t CurrentStep() const noexcept override { return step_; }
  void ReportDiagnostic(Severity severity, std::string_view id, std::string_view text,
                        std::string_view remedy = {}) noexcept override {
    const std::lock_guard lock(mutex_);
    diagnostics_.push_back({severity, std::string(id), std::string(text), std::string(remedy)});
  }
  void CountDrop(std::string_view what, uint64_t count = 1) noexcept override {
    const std::lock_guard lock(mutex_);
    drops_[std::string(what)] += count;
  }
  void Activate() noexcept override { active_ = true; }
  bool active() const noexcept override { return active_; }
  void Finish(std::string_view) noexcept override { active_ = false; }
  void Disable(std::string_view) noexcept override { active_ = false; }

  // May be called while other threads record.
  bool HasDiagnostic(std::string_view id) const {
    const std::lock_guard lock(mutex_);
    return std::any_of(diagnostics_.begin(), diagnostics_.end(), [&](const Diagnostic& d) { return d.id == id; });
  }

  // What was told. Not to be called while other threads still record.
  const std::vector<LaunchRecord>& records() const { return records_; }
  const std::vector<RunFacts>& facts() const { return facts_; }
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }
  const std::map<std::string, uint64_t>& drops() const { return drops_; }
  uint64_t intern_calls() const { return interned_; }
  // Step and group of each armed step.
  const std::vector<std::pair<uint64_t, uint32_t>>& armed() const { return armed_; }
  // What NoteMemory was told: bytes in use and peak.
  const std::vector<std::pair<uint64_t, uint64_t>>& memory() const { return memory_; }
  // What Keep was told of one kind.
  template <typename Kept>
  std::vector<Kept> kept() const {
    const std::lock_guard lock(mutex_);
    std::vector<Kept> all;
    for (const trace::RunRecord& record : kept_) {
      if (const Kept* one = std::get_if<Kept>(&record)) all.push_back(*one);
    }
    return all;
  }
  // The records so far. May be called while other threads record.
  std::vector<LaunchRecord> CopyRecords() const {
    const std::lock_guard lock(mutex_);
    return records_;
  }
  size_t graph_members() const { return graphs_.members(); }  // of the graphs that are not forgotten
  // The text of an interned id; "" for 0.
  std::string Name(uint32_t id) const {
    const std::lock_guard lock(mutex_);
    return id == 0 || id > names_.size() ? "" : names_[id - 1];
  }
  // The value of a metric in a record; 0 when the record has no such sample.
  static uint64_t Value(const LaunchRecord& record, uint32_t metric) {
    for (uint32_t i = 0; i < record.sample_count; ++i) {
      if (record.samples[i].metric == metric) return record.samples[i].value;
    }
    return 0;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, uint32_t> ids_;
  std::vector<std::string> names_;
  uint64_t interned_ = 0;
  std::map<std::string, uint32_t> metrics_;
  uint32_t next_metric_ = kFirstFreeMetric;
  std::vector<RunFacts> facts_;
  std::vector<LaunchRecord> records_;
  GraphLaunches graphs_;
  std::vector<Diagnostic> diagnostics_;
  std::map<std::string, uint64_t> drops_;
  uint64_t step_ = 0;
  std::vector<std::pair<uint64_t, uint32_t>> armed_;
  std::vector<std::pair<uint64_t, uint64_t>> memory_;
  std::vector<trace::RunRecord> kept_;
  bool active_ = false;
};

}  // namespace rfinject::testing

#endif  // RFINJECT_COLLECTOR_TESTING_FAKE_RECORDER_H_
