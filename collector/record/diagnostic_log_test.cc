#include "collector/record/diagnostic_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "collector/record/testing/recorder_fixture.h"

namespace rfinject {
namespace {

using ::rfinject::testing::TraceContent;
using ::testing::SizeIs;

TEST_F(TraceRecorderTest, DiagnosticsAreSaidOnceAndKept) {
  settings().verbosity = 0;
  const ChildResult child = InChild([&] {
    Recorder& r = recorder();
    r.ReportDiagnostic(Severity::kInfo, "early", "held until it is a training process");
    r.Activate();
    r.ReportDiagnostic(Severity::kWarning, "w", "something\nis odd", "mend it");
    r.ReportDiagnostic(Severity::kWarning, "w", "again");
    r.CountDrop("things", 2);
    r.CountDrop("things");
    r.Finish("exit");
  });
  EXPECT_TRUE(child.exited(0));
  EXPECT_EQ(child.err,
            "rfinject: held until it is a training process\n"
            "rfinject: warning: something is odd (mend it)\n");
  const TraceContent t = Trace();
  EXPECT_EQ(t.error, "");
  ASSERT_THAT(t.diagnostics, SizeIs(2));
  EXPECT_EQ(t.diagnostics[1].severity(), v1::SEVERITY_WARNING);
  EXPECT_EQ(t.diagnostics[1].text(), "something\nis odd");
  EXPECT_EQ(t.diagnostics[1].remedy(), "mend it");
  EXPECT_EQ(t.drops.at("things"), 3u);
}

TEST_F(TraceRecorderTest, AnIdleProcessSaysNothing) {
  settings().verbosity = 0;
  const ChildResult child = InChild([&] {
    recorder().ReportDiagnostic(Severity::kError, "e", "nobody asked");
    recorder().Finish("exit");
  });
  EXPECT_EQ(child.err, "");
}

TEST_F(TraceRecorderTest, QuietIsQuiet) {
  settings().verbosity = -1;
  const ChildResult child = InChild([&] {
    recorder().Activate();
    recorder().ReportDiagnostic(Severity::kError, "e", "x");
    recorder().Finish("exit");
  });
  EXPECT_EQ(child.err, "");
  EXPECT_NE(Trace().FindDiagnostic("e"), nullptr);
}

// A closed pipe at the other end of stderr must not end the program.
TEST_F(TraceRecorderTest, ABrokenStderrIsSurvived) {
  settings().verbosity = 0;
  const ChildResult child = InChild([&] {
    int broken[2];
    ASSERT_EQ(pipe(broken), 0);
    close(broken[0]);
    dup2(broken[1], STDERR_FILENO);
    signal(SIGPIPE, SIG_DFL);
    recorder().Activate();
    recorder().ReportDiagnostic(Severity::kError, "e", "nobody reads this");
    recorder().Finish("exit");
  });
  EXPECT_TRUE(child.exited(0)) << child.status;
  EXPECT_TRUE(Trace().has_end);
}

}  // namespace
}  // namespace rfinject
