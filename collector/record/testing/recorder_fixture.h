// File: recorder_fixture.h
//
// What the tests of the recorder's parts share: a recorder with a trace in a folder of its own, and processes.
#ifndef RFINJECT_COLLECTOR_RECORD_TESTING_RECORDER_FIXTURE_H_
#define RFINJECT_COLLECTOR_RECORD_TESTING_RECORDER_FIXTURE_H_

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "collector/record/trace_recorder.h"
#include "collector/testing/trace_content.h"
#include "proto/wire/framing.h"

namespace rfinject {

using testing::ParseTrace;
using testing::ReadFile;
using testing::ReadTrace;
using testing::TemporaryFolder;
using testing::TraceContent;

inline LaunchRecord MakeRecord(uint32_t kernel, uint64_t time_ns, uint64_t flop = 0) {
  LaunchRecord record;
  record.identity.kernel = kernel;
  record.samples[record.sample_count++] = {kTime, time_ns};
  if (flop != 0) record.samples[record.sample_count++] = {kModelFlop, flop};
  return record;
}

// What a child process did: how it ended, and what it said on stderr.
struct ChildResult {
  int status = -1;
  std::string err;
  bool exited(int code) const { return WIFEXITED(status) && WEXITSTATUS(status) == code; }
};

// Runs `body` in a forked child, which then ends by _exit(0). Recorders there are made anew or inherited; the test's
// own process stays single-threaded where it can, so that sanitizers and fork agree.
inline ChildResult InChild(const std::function<void()>& body, const std::function<void(pid_t)>& meanwhile = {}) {
  int err[2];
  EXPECT_EQ(pipe2(err, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(err[1], STDERR_FILENO);
    body();
    _exit(::testing::Test::HasFailure() ? 99 : 0);
  }
  close(err[1]);
  ChildResult result;
  if (meanwhile) meanwhile(child);
  char buffer[4096];
  for (ssize_t n; (n = read(err[0], buffer, sizeof buffer)) > 0;) result.err.append(buffer, static_cast<size_t>(n));
  close(err[0]);
  EXPECT_EQ(waitpid(child, &result.status, 0), child);
  return result;
}

class TraceRecorderTest : public ::testing::Test {
 protected:
  TraceRecorderTest() {
    settings_.output = folder_.path() + "/t.rfx";
    settings_.verbosity = -1;
  }
  // Recorders live for ever, and so must what they refer to.
  Settings& settings() { return settings_; }
  Recorder& recorder() {
    if (recorder_ == nullptr) recorder_ = new TraceRecorder(settings_);
    return *recorder_;
  }
  TraceContent Trace(const std::string& name = "t.rfx") { return ReadTrace(folder_.path() + "/" + name); }
  // A finished recorder's trace, which must be without fault.
  TraceContent FinishedTrace() {
    recorder().Finish("exit");
    TraceContent content = Trace();
    EXPECT_EQ(content.error, "");
    EXPECT_EQ(content.trailing_bytes, 0u);
    EXPECT_TRUE(content.has_end);
    EXPECT_EQ(content.end.reason(), "exit");
    return content;
  }

  TemporaryFolder folder_;

 private:
  // Kept, so that the leak checker sees that it is meant.
  static Settings& NewSettings() {
    static auto* all = new std::vector<Settings*>;
    return *all->emplace_back(new Settings);
  }
  Settings& settings_ = NewSettings();
  TraceRecorder* recorder_ = nullptr;
};

inline uint64_t Drops(const TraceContent& t) {
  uint64_t drops = 0;
  for (const auto& [what, count] : t.drops) drops += count;
  return drops;
}

// Waits, as long as it takes, until `path` holds a trace for which `wanted` is true.
inline bool WaitForTrace(const std::string& path, const std::function<bool(const TraceContent&)>& wanted) {
  for (int i = 0; i < 6000; ++i) {
    const TraceContent t = ReadTrace(path);
    if (t.chunks.size() > 0 && wanted(t)) return true;
    usleep(10'000);
  }
  return false;
}

// A diagnostic that is in the file was written after all that was recorded before it.
inline bool WaitForAllBefore(Recorder& recorder, const std::string& path, const std::string& id) {
  // A mark that comes while the writer has read the rings and not yet written is in the file before what it follows.
  // One that is made when the first is there is of a later turn.
  for (const std::string& mark : {id, id + " again"}) {
    recorder.ReportDiagnostic(Severity::kInfo, mark, "a mark in the file");
    if (!WaitForTrace(path, [&](const TraceContent& t) { return t.FindDiagnostic(mark) != nullptr; })) return false;
  }
  return true;
}

inline LaunchRecord MakeRecordOf(Phase phase, uint32_t kernel) {
  LaunchRecord record = MakeRecord(kernel, 10);
  record.identity.site.phase = phase;
  return record;
}

// What a kill after each of its frames would have left of a trace.
inline std::vector<TraceContent> AfterEachFrame(const std::string& path) {
  const std::string bytes = ReadFile(path);
  std::vector<TraceContent> cuts;
  for (size_t end = wire::kFileHeaderSize; end + wire::kFrameHeaderSize <= bytes.size();) {
    uint32_t payload = 0;
    std::memcpy(&payload, bytes.data() + end + sizeof wire::kFrameMagic, sizeof payload);
    end += wire::kFrameHeaderSize + payload;
    cuts.push_back(ParseTrace(bytes.substr(0, end)));
    EXPECT_EQ(cuts.back().error, "");
  }
  return cuts;
}

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_RECORD_TESTING_RECORDER_FIXTURE_H_
