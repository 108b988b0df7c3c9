#include "injector/source_lines.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

#include "collector/site.h"
#include "collector/source_line.h"
#include "collector/sync.h"
#include "injector/layer_stack.h"
#include "injector/python/python_frames.h"
#include "injector/torch/autograd.h"

namespace rfinject {
namespace {

// A launch whose line was asked for, and the number that the next node of its thread had then.
struct Launch {
  uint64_t thread = 0, next_node = 0;
  uint32_t layer = 0, op = 0, line = 0;
};

// How many launches are kept, which are the newest; a step of ResNet-152 has 2000 keys. The lock is tried and never
// waited for: a launch may come from a signal handler, and a forked child may inherit the lock locked.
constexpr size_t kLaunches = 16384;
constinit Mutex g_lock;
std::array<Launch, kLaunches> g_launches RFINJECT_GUARDED_BY(g_lock);
uint64_t g_launch_count RFINJECT_GUARDED_BY(g_lock) = 0;

bool LineOfNode(uint32_t layer, uint32_t* line) noexcept {
  const NodeNumber node = OwnerNodeOfThread();
  if (node.sequence == UINT64_MAX) return true;
  if (!g_lock.TryLock()) return false;
  const HeldLock held(g_lock);
  const uint64_t after = node.sequence + 1;  // the thread's next number after the node's birth
  uint64_t least = UINT64_MAX;
  const uint64_t kept = g_launch_count < kLaunches ? g_launch_count : kLaunches;
  // The search goes from the newest back. Of several launches that a node was born with, the first is the operator's
  // own. Of two others that are equally near, a view is more likely made for the later.
  for (uint64_t i = 1; i <= kept; ++i) {
    const Launch& launch = g_launches[(g_launch_count - i) % kLaunches];
    if (launch.thread != node.thread || launch.layer != layer) continue;
    const uint64_t distance = launch.next_node > after ? launch.next_node - after : after - launch.next_node;
    if (distance > least || (distance == least && distance != 0)) continue;
    least = distance;
    *line = launch.line;
  }
  return true;
}

// The line of a checkpointed part that is run again inside the backward. The innermost line of the program may be in
// that part, and then that line also ran its forward. Or it is the call of backward(): then the line is that of the
// same operator in the forward.
bool LineOfRecompute(const Site& site, uint32_t here, uint32_t* line) noexcept {
  if (!g_lock.TryLock()) return false;
  const HeldLock held(g_lock);
  const Launch* same_operator = nullptr;
  const uint64_t kept = g_launch_count < kLaunches ? g_launch_count : kLaunches;
  for (uint64_t i = 1; i <= kept; ++i) {
    const Launch& launch = g_launches[(g_launch_count - i) % kLaunches];
    if (launch.layer != site.layer) continue;
    if (launch.line == here) {
      *line = here;
      return true;
    }
    if (same_operator == nullptr && launch.op == site.op) same_operator = &launch;
  }
  *line = same_operator != nullptr ? same_operator->line : here;
  return true;
}

bool LineOfLaunch(const Site& site, Recorder& recorder, uint32_t* line) noexcept {
  if (site.phase == Phase::kBackward) return LineOfNode(site.layer, line);
  ProgramLine here;
  if (ReadProgramLine(&here)) *line = recorder.DefineSourceLine(here.file.view(), here.line, here.function.view());
  if (site.phase == Phase::kRecompute && !LineOfRecompute(site, *line, line)) return false;
  NextNode next;
  if (*line == 0 || !NextNodeOfThread(&next) || !g_lock.TryLock()) return true;
  const HeldLock held(g_lock);
  g_launches[g_launch_count++ % kLaunches] = {next.thread, next.sequence, site.layer, site.op, *line};
  return true;
}

bool LineOfThread(char* text, size_t size) noexcept {
  ProgramLine line;
  if (!ReadProgramLine(&line)) return false;
  const std::string_view file = line.file.view();
  std::snprintf(text, size, "%.*s:%u", static_cast<int>(file.size()), file.data(), line.line);
  return true;
}

}  // namespace

void OfferSourceLines(const PythonApi& python, Recorder& recorder) {
  const char* why = "";
  if (InitPythonFrames(python, &why)) {
    g_source_line.store(&LineOfLaunch, std::memory_order_release);
    g_program_line.store(&LineOfThread, std::memory_order_release);
  } else {
    recorder.ReportDiagnostic(Severity::kInfo, "source-lines",
                              "launches have no lines of the program: " + std::string(why));
  }
  if (!CallsAreKnown()) {
    recorder.ReportDiagnostic(
        Severity::kInfo, "calls-unknown",
        "a model that nobody calls is not known to be one, and optimizers of one class are not told "
        "apart: Python's frames cannot be read for what functions were called with");
  }
}

void StopOfferingSourceLines() noexcept {
  g_source_line.store(nullptr, std::memory_order_release);
  g_program_line.store(nullptr, std::memory_order_release);
}

void ResetSourceLinesAfterFork() noexcept { g_lock.ResetInForkedChild(); }

}  // namespace rfinject
