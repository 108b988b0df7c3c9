#include "collector/record/fork.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "collector/record/testing/recorder_fixture.h"

#if defined(__SANITIZE_THREAD__)
// A forked child of a process with threads may start threads of its own here; TSan would end it for that.
extern "C" const char* __tsan_default_options() { return "die_after_fork=0"; }
#endif

namespace rfinject {
namespace {

using ::rfinject::testing::TraceContent;
using ::testing::SizeIs;

TEST_F(TraceRecorderTest, AForkedChildIsIdleAndLeavesTheParentsTraceAlone) {
  settings().output = folder_.path() + "/";
  const ChildResult parent = InChild([&] {
    Recorder& r = recorder();
    r.Activate();
    const uint32_t kernel = r.Intern("inherited");
    r.Record(MakeRecord(kernel, 1));
    r.EndStep(4);
    const ChildResult child = InChild([&] {
      EXPECT_FALSE(r.active());
      EXPECT_EQ(r.CurrentStep(), 0u);
      r.Record(MakeRecord(kernel, 1));
      r.Finish("exit");
    });
    EXPECT_TRUE(child.exited(0));
    r.Record(MakeRecord(kernel, 1));
    r.Finish("exit");
  });
  EXPECT_TRUE(parent.exited(0)) << parent.err;
  const std::vector<std::string> files = folder_.List();
  ASSERT_THAT(files, SizeIs(1));
  const TraceContent t = Trace(files[0]);
  EXPECT_EQ(t.error, "");
  EXPECT_TRUE(t.has_end);
  EXPECT_EQ(t.Launches(), 2u);
}

TEST_F(TraceRecorderTest, AForkedChildCanBecomeATraceOfItsOwn) {
  settings().output = folder_.path() + "/%p.rfx";
  int to_test[2];
  ASSERT_EQ(pipe(to_test), 0);
  const ChildResult parent = InChild([&] {
    Recorder& r = recorder();
    const uint32_t kernel = r.Intern("inherited");
    const uint32_t model =
        r.DefineModel({.class_name = "M", .parameters = 1, .parameter_bytes = 4, .trainable_parameters = 1});
    const uint32_t layer = r.DefineLayer({.model = model,
                                          .path = "fc",
                                          .class_name = "Linear",
                                          .parameters = 1,
                                          .parameter_bytes = 4,
                                          .training = true});
    r.ReportDiagnostic(Severity::kInfo, "known", "still true in the child");
    r.Activate();
    for (int i = 0; i < 10; ++i) r.Record(MakeRecord(kernel, 1));
    InChild([&] {
      const pid_t pid = getpid();
      EXPECT_EQ(write(to_test[1], &pid, sizeof pid), static_cast<ssize_t>(sizeof pid));
      LaunchRecord record = MakeRecord(kernel, 7);
      record.identity.site.layer = layer;
      record.identity.site.op = r.Intern("new in the child");
      r.Record(record);
      r.Activate();
      EXPECT_TRUE(r.active());
      r.Record(record);
      r.EndStep(2);
      r.Finish("exit");
    });
    r.Finish("exit");
  });
  EXPECT_TRUE(parent.exited(0)) << parent.err;
  pid_t child = 0;
  ASSERT_EQ(read(to_test[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  close(to_test[0]);
  close(to_test[1]);
  ASSERT_THAT(folder_.List(), SizeIs(2));
  const TraceContent t = Trace(std::to_string(child) + ".rfx");
  EXPECT_EQ(t.error, "");
  EXPECT_TRUE(t.has_end);
  EXPECT_EQ(t.run.process().pid(), static_cast<uint32_t>(child));
  EXPECT_EQ(t.Launches(), 2u);
  EXPECT_TRUE(t.Total("rf.time").sum == 14);
  ASSERT_THAT(t.keys, SizeIs(1));
  EXPECT_EQ(t.names.at(t.keys.begin()->second.key.kernel()), "inherited");
  EXPECT_EQ(t.layers.at(t.keys.begin()->second.key.layer()).path(), "fc");
  EXPECT_NE(t.FindDiagnostic("known"), nullptr);
  ASSERT_THAT(t.steps, SizeIs(1));
  EXPECT_EQ(t.steps[0].index(), 0u);
}

// ASan's allocator (GCC 12) does not mind fork(): a lock that another thread holds then stays held in the child,
// whose next allocation waits for ever. The C library's does.
#if !defined(__SANITIZE_ADDRESS__)
// fork() while other threads record and define: the child must neither hang nor see half a definition.
TEST_F(TraceRecorderTest, ForkingWhileOtherThreadsAreBusy) {
  settings().output = folder_.path() + "/%p.rfx";
  const ChildResult parent = InChild([&] {
    Recorder& r = recorder();
    r.Activate();
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&, t] {
        for (uint64_t i = 0; !stop.load(); ++i) {
          const uint32_t name = r.Intern(std::to_string(t) + "/" + std::to_string(i % 5000));
          r.Record(MakeRecord(name, i));
          r.Add(MakeRecord(name, i));
          r.CountDrop("d" + std::to_string(i % 7));
        }
      });
    }
    for (int i = 0; i < 20; ++i) {
      const ChildResult child = InChild([&] {
        const uint32_t name = r.Intern("in the child " + std::to_string(i));
        EXPECT_NE(name, 0u);
        r.Record(MakeRecord(name, 1));
        if (i % 2 == 0) r.Activate();
        r.Finish("exit");
      });
      EXPECT_TRUE(child.exited(0)) << child.status << child.err;
    }
    stop.store(true);
    for (std::thread& thread : threads) thread.join();
    r.Finish("exit");
  });
  EXPECT_TRUE(parent.exited(0)) << parent.err;
  ASSERT_THAT(folder_.List(), SizeIs(11));
  for (const std::string& file : folder_.List()) {
    const TraceContent t = Trace(file);
    EXPECT_EQ(t.error, "") << file;
    EXPECT_TRUE(t.has_end) << file;
  }
}
#endif

// A vfork child runs in our memory: when it calls _exit after a failed exec, Finish must not end the parent's trace.
TEST_F(TraceRecorderTest, AVforkChildDoesNotFinishItsParent) {
  Recorder& r = recorder();
  r.Activate();
  Recorder* volatile shared = &r;
  // NOLINTNEXTLINE(bugprone-unsafe-functions): what programs do is what is tested.
  const pid_t child = vfork();
  if (child == 0) {
    shared->Finish("_exit");
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(r.active());
  r.Record(MakeRecord(r.Intern("k"), 1));
  EXPECT_EQ(FinishedTrace().Launches(), 1u);
}

}  // namespace
}  // namespace rfinject
