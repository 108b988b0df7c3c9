// File: null_recorder.h
//
// A Recorder that keeps nothing, for fakes that override what their test asks of it.
#ifndef RFINJECT_COLLECTOR_TESTING_NULL_RECORDER_H_
#define RFINJECT_COLLECTOR_TESTING_NULL_RECORDER_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "collector/recorder.h"

namespace rfinject::testing {

class NullRecorder : public Recorder {
 public:
  uint32_t Intern(std::string_view) noexcept override { return 0; }
  uint32_t DefineMetric(std::string_view, std::string_view, double) noexcept override { return 0; }
  uint32_t DefineModel(const ModelDefinition&) noexcept override { return 0; }
  uint32_t DefineLayer(const LayerDefinition&) noexcept override { return 0; }
  void SetLayerShapes(uint32_t, std::string_view, std::string_view) noexcept override {}
  bool FindLayer(uint32_t, LayerDefinition*) override { return false; }
  void UpdateFacts(const RunFacts&) noexcept override {}
  void Record(const LaunchRecord&) noexcept override {}
  void RecordLaunch(const LaunchIdentity&, uint32_t) noexcept override {}
  void Add(const LaunchRecord&) noexcept override {}
  void AddSamples(const LaunchRecord&, uint64_t) noexcept override {}
  uint32_t DefineGraph(std::span<const GraphMember>, const LaunchIdentity&, bool) noexcept override { return 0; }
  void SettleGraph(uint32_t, bool) noexcept override {}
  void ForgetGraph(uint32_t) noexcept override {}
  void MayWrite() noexcept override {}
  uint32_t DefineSourceLine(std::string_view, uint32_t, std::string_view) noexcept override { return 0; }
  void NoteSourceLine(const LaunchIdentity&, uint32_t) noexcept override {}
  void NoteStack(const LaunchIdentity&, std::span<const NativeFrame>) noexcept override {}
  void DescribeModule(uint32_t, std::string_view, std::string_view) noexcept override {}
  void NameFrame(const NativeFrame&, std::string_view) noexcept override {}
  void EndStep(uint64_t) noexcept override {}
  uint64_t CurrentStep() const noexcept override { return 0; }
  void MarkArmed(uint32_t) noexcept override {}
  void NoteMemory(uint64_t, uint64_t) noexcept override {}
  void NoteMemoryPeak(const MemoryPeak&) noexcept override {}
  void NoteCalls(uint32_t, uint32_t, uint32_t) noexcept override {}
  void NoteEvaluation(uint64_t) noexcept override {}
  void LeaveStepOut() noexcept override {}
  void NoteCompilation() noexcept override {}
  void BeginTraining() noexcept override {}
  void RestartStep() noexcept override {}
  void Keep(trace::RunRecord) noexcept override {}
  bool InWindow() const noexcept override { return true; }
  bool WindowIsOver() const noexcept override { return false; }
  void RequestMeasuring(bool) noexcept override {}
  bool NextStepIsMeasured() const noexcept override { return true; }
  void ReportDiagnostic(Severity, std::string_view, std::string_view, std::string_view = {}) noexcept override {}
  void CountDrop(std::string_view, uint64_t = 1) noexcept override {}
  void BeginFirstStep() noexcept override {}
  void Activate() noexcept override {}
  bool active() const noexcept override { return true; }
  void WriteNow() noexcept override {}
  void Finish(std::string_view) noexcept override {}
  void Disable(std::string_view) noexcept override {}
  bool BeginAgain() noexcept override { return true; }
};

}  // namespace rfinject::testing

#endif  // RFINJECT_COLLECTOR_TESTING_NULL_RECORDER_H_
