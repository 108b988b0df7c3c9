#include "collector/record/writer.h"

#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "collector/last_words.h"
#include "collector/output_path.h"
#include "collector/process_facts.h"
#include "collector/record/chunk_schedule.h"
#include "collector/safe_write.h"
#include "collector/trace_encoder.h"
#include "proto/wire/framing.h"

namespace rfinject {
namespace {

// Callers cease to write after a few turns in a row that took longer than this, because the disk is slow. A single
// one may be chance.
constexpr int64_t kLongTurnNs = 20'000'000;
constexpr int kLongTurns = 2;
// What Stop, whose caller wants to exit, waits at most for the writer.
constexpr int64_t kStopWaitNs = 3'000'000'000;
// How often the control file is looked for, which costs one open(2) where there is none.
constexpr int64_t kLookIntervalNs = 1'000'000'000;

}  // namespace

// --- Writing

bool TraceWriter::WriteFrame(Output* output) noexcept try {
  std::string error = "out of memory";
  wire::Encoder& frame = output->frame;
  if (frame.ok()) {
    if (frame.size() == wire::kFrameHeaderSize) return true;
    if (output->file.WriteFrame(frame.data(), frame.size(), &error)) return true;
  }
  state_->Mute(RecorderState::Mode::kDisabled);
  output->file.Close();
  log_->PrintError("nothing is recorded any more: " + error + "; the program goes on");
  return false;
} catch (...) {
  state_->Mute(RecorderState::Mode::kDisabled);
  output->file.Close();
  return false;
}

bool TraceWriter::BuildFrame(Output* output, bool last, bool* more) noexcept {
  output->frame.Clear(wire::kFrameHeaderSize);
  StateGuard guard(state_, kWriterWaitNs);
  if (!guard) return false;
  PendingTrace& trace = *state_->trace;
  try {
    if (const uint64_t drops = rings_->TakeRinglessDrops()) {
      trace.pending.AddDrop("launches: no memory for a ring", drops);
    }
  } catch (...) {
  }
  try {
    if (last && !trace.pending.HoldsBack()) trace.pending.SettleWhatRan();
  } catch (...) {
  }
  *more = trace.frames.Build(output->file.size(), state_->MaxBytes(), last && !state_->active(), &output->frame);
  *more = *more || trace.pending.HoldsBack();
  return true;
}

bool TraceWriter::Flush(Output* output, bool last) noexcept {
  if (!output->file.is_open()) return false;
  // A program may make things to write faster than they are written. Then there is always more, but the rings must
  // not overflow meanwhile, and Finish must not wait for an end that does not come.
  for (bool more = true; more && (last || state_->active());) {
    if (!rings_->Drain(state_, last) || !BuildFrame(output, last, &more) || !WriteFrame(output)) return false;
  }
  return true;
}

void TraceWriter::WriteTurn(Output* output) noexcept {
  if (flush_now_.exchange(false, std::memory_order_relaxed) ||
      MonotonicNs() >= output->next_chunk_ns.load(std::memory_order_relaxed)) {
    const uint64_t before = output->file.size();
    Flush(output, false);
    written_.Signal();
    output->next_chunk_ns.store(NextChunkNs(output, output->file.size() - before), std::memory_order_relaxed);
  } else {
    rings_->Drain(state_, false);
  }
  log_->PrintHeld();
}

int64_t TraceWriter::NextChunkNs(Output* output, uint64_t chunk_bytes) noexcept {
  const int64_t now = MonotonicNs();
  if (IsNearLimit(output->file.size(), state_->MaxBytes()) && !std::exchange(output->limit_said, true)) {
    {
      StateGuard guard(state_, kWriterWaitNs);
      if (guard) state_->trace->pending.steps.near_limit = true;
    }
    log_->Report(Severity::kInfo, "trace-size",
                 "the trace has half of the bytes that it may have; from here on its steps are summed and it is "
                 "written more seldom, so that what a killed program loses is longer",
                 "--max-size MB allows more, --steps N measures less");
  }
  return now + ChunkDistance(now - output->begun_ns, output->file.size(), chunk_bytes, state_->MaxBytes());
}

void TraceWriter::WriteLast(Output* output) noexcept {
  if (Flush(output, true)) {
    output->frame.Clear(wire::kFrameHeaderSize);
    EncodeEnd(stop_reason_, UnixNs(), &output->frame);
    if (WriteFrame(output)) {
      output->file.Close();
      output->whole.store(true, std::memory_order_release);
    }
  }
  output->stopped.Signal();
}

void TraceWriter::LookForRequest(Output* output) noexcept {
  output->next_look_ns.store(MonotonicNs() + kLookIntervalNs, std::memory_order_relaxed);
  const ControlFile::Request request = output->control.Take();
  if (request == ControlFile::Request::kNone) return;
  if (request != ControlFile::Request::kRefused) {
    state_->window.Request(request == ControlFile::Request::kStart);
    return;
  }
  // Said once, also where the file cannot be removed and is refused each second.
  log_->Report(
      Severity::kWarning, "control",
      "the file .control beside the trace is not followed and is removed: it holds neither start nor stop, or "
      "others may write to it",
      "rfinject control PID start|stop writes it");
}

// --- A thread as the writer

void* TraceWriter::ThreadMain(void* self) noexcept {
  prctl(PR_SET_NAME, "rfinject");
  auto* writer = static_cast<TraceWriter*>(self);
  writer->Loop(writer->output_.load(std::memory_order_acquire));
  return nullptr;
}

void TraceWriter::Loop(Output* output) noexcept {
  for (;;) {
    const uint32_t seen = wake_.count();
    if (!state_->active()) break;
    WriteTurn(output);
    if (MonotonicNs() >= output->next_look_ns.load(std::memory_order_relaxed)) LookForRequest(output);
    const int64_t next = std::min(output->next_chunk_ns.load(std::memory_order_relaxed),
                                  output->next_look_ns.load(std::memory_order_relaxed));
    wake_.WaitFor(seen, next - MonotonicNs());
  }
  WriteLast(output);
}

void TraceWriter::Wake() noexcept {
  if (kind_.load(std::memory_order_relaxed) == Kind::kThread) return wake_.Signal();
  // A caller that writes learns of it at its next MayWrite: this one may be in a signal handler.
  turn_due_.store(true, std::memory_order_relaxed);
}

bool TraceWriter::StartThread() noexcept {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  // Never joined: Stop waits for Output::stopped, and not for ever.
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  const Kind before = kind_.exchange(Kind::kThread, std::memory_order_relaxed);
  pthread_t thread;
  // The new thread inherits a mask with all signals blocked: the program's handlers run on the program's threads.
  SignalShield shield;
  const bool started = pthread_create(&thread, &attributes, &ThreadMain, this) == 0;
  pthread_attr_destroy(&attributes);
  if (!started) kind_.store(before, std::memory_order_relaxed);
  return started;
}

void TraceWriter::WriteNow() noexcept {
  constexpr int64_t kWaitNs = 1'000'000'000;
  if (!state_->active() || !state_->IsOurProcess()) return;
  const uint32_t seen = written_.count();
  FlushSoon();
  MayWrite();
  // A turn that had begun before may have left out what was asked for; then the next one comes at once.
  if (kind_.load(std::memory_order_relaxed) != Kind::kThread) return;
  const int64_t end = MonotonicNs() + kWaitNs;
  while (flush_now_.load(std::memory_order_relaxed) || written_.count() == seen) {
    const int64_t left = end - MonotonicNs();
    if (left <= 0 || !state_->active()) return;
    written_.WaitFor(written_.count() == seen ? seen : written_.count(), left);
  }
}

// --- A caller as the writer

void TraceWriter::WriteIfDue() noexcept {
  Output* output = output_.load(std::memory_order_acquire);
  if (output == nullptr || !state_->active()) return;
  // The coarse clock is a millisecond or four behind, and costs a quarter of the exact one.
  if (!turn_due_.load(std::memory_order_relaxed) &&
      ClockNs(CLOCK_MONOTONIC_COARSE) < output->next_chunk_ns.load(std::memory_order_relaxed)) {
    return;
  }
  if (!state_->IsOurProcess()) return;
  // A signal handler of the program that ran here could exit, and wait in Stop for this writer, which waits for the
  // handler.
  SignalShield shield;
  if (!turn_lock_.TryLock()) return;
  const HeldLock held(turn_lock_);
  if (kind_.load(std::memory_order_relaxed) != Kind::kCaller) return;
  const int64_t begin = MonotonicNs();
  turn_due_.store(false, std::memory_order_relaxed);
  WriteTurn(output);
  long_turns_ = MonotonicNs() - begin > kLongTurnNs ? long_turns_ + 1 : 0;
  if (long_turns_ >= kLongTurns || ThreadsOfProcess() != 1) StartThread();
}

void TraceWriter::MayLookForRequest(int64_t now) noexcept {
  Output* output = output_.load(std::memory_order_acquire);
  if (output == nullptr || kind_.load(std::memory_order_relaxed) != Kind::kCaller ||
      now < output->next_look_ns.load(std::memory_order_relaxed)) {
    return;
  }
  SignalShield shield;
  if (!turn_lock_.TryLock()) return;
  const HeldLock held(turn_lock_);
  if (kind_.load(std::memory_order_relaxed) == Kind::kCaller) LookForRequest(output);
}

void TraceWriter::WriteLastIfCaller(Output* output) noexcept {
  if (kind_.load(std::memory_order_relaxed) != Kind::kCaller || !turn_lock_.LockFor(kStopWaitNs)) return;
  const HeldLock held(turn_lock_);
  if (kind_.load(std::memory_order_relaxed) != Kind::kCaller) return;
  kind_.store(Kind::kNone, std::memory_order_relaxed);
  WriteLast(output);
}

// --- Life

bool TraceWriter::Start(bool callers_may_write) noexcept {
  if (!callers_may_write || ThreadsOfProcess() != 1) return StartThread();
  kind_.store(Kind::kCaller, std::memory_order_relaxed);
  return true;
}

// Whether the counters of a GPU are read. A GPU's driver has threads, and a launch must not wait for a disk. Where no
// source is named, as in tests, the answer is yes.
bool TraceWriter::MeasuresAGpu() noexcept {
  StateGuard guard(state_);
  if (!guard) return true;
  const SourceKind source = state_->definitions->facts.source;
  return source != SourceKind::kNone && source != SourceKind::kEstimated;
}

void TraceWriter::Open(int fd) noexcept try {
  g_trace_begun.store(true, std::memory_order_relaxed);
  const Settings& settings = state_->settings;
  std::string error;
  auto* output = new Output;  // never freed: the writer may be in it when the process ends
  output->begun_ns = MonotonicNs();
  const bool opened = fd >= 0 ? output->file.Adopt(fd, &error) : output->file.Open(settings.output, &error);
  if (opened && fd < 0) output->control.Watch(output->file.path());
  if (opened && fd < 0 && settings.link_latest) (void)LinkLatest(output->file.path());
  output_.store(output, std::memory_order_release);
  RecorderState::Mode idle = RecorderState::Mode::kIdle;
  // Another thread may have finished the recorder meanwhile; from here on Stop waits for the writer.
  if (opened && state_->mode.compare_exchange_strong(idle, RecorderState::Mode::kActive, std::memory_order_acq_rel)) {
    if (turn_lock_.LockFor(kLockWaitNs)) {
      const HeldLock held(turn_lock_);
      if (Start(fd < 0 && !MeasuresAGpu() && !output->file.MayHang())) return;
    }
    error = "no thread could be started";
  } else if (opened && stop_requested_.load(std::memory_order_acquire)) {
    const SignalShield shield;  // as in WriteIfDue
    WriteLast(output);
    return;
  }
  output->file.Close();
  output->stopped.Signal();
  if (error.empty()) return;
  state_->Mute(RecorderState::Mode::kDisabled);
  log_->PrintError("nothing is recorded: " + error);
} catch (...) {
  state_->Mute(RecorderState::Mode::kDisabled);
}

void TraceWriter::Stop(RecorderState::Mode mode, std::string_view reason) noexcept {
  if (!state_->IsOurProcess()) return;
  // No signal handler of the program may run between here and the end: it could exit, and come here again.
  SignalShield shield;
  if (!stop_requested_.exchange(true, std::memory_order_acq_rel)) {
    reason = reason.substr(0, sizeof stop_reason_text_);
    if (!reason.empty()) std::memcpy(stop_reason_text_, reason.data(), reason.size());
    stop_reason_ = {stop_reason_text_, reason.size()};
    if (state_->Mute(mode) != RecorderState::Mode::kActive) return;
    Wake();
  }
  Output* output = output_.load(std::memory_order_acquire);
  if (output == nullptr) return;
  WriteLastIfCaller(output);
  // A second caller also waits, so that neither exits before the file is whole.
  const int64_t deadline = MonotonicNs() + kStopWaitNs;
  while (output->stopped.count() == 0 && MonotonicNs() < deadline) {
    output->stopped.WaitFor(0, deadline - MonotonicNs());
  }
}

bool TraceWriter::BeginAgain() noexcept {
  Output* output = output_.load(std::memory_order_acquire);
  if (output != nullptr && output->stopped.count() == 0) return false;
  if (output != nullptr) {
    output->frame.Free();
    // The rest stays: whoever signals `stopped` may still be in it.
    output->before = std::exchange(before_, output);
  }
  output_.store(nullptr, std::memory_order_release);
  flush_now_.store(false, std::memory_order_relaxed);
  stop_requested_.store(false, std::memory_order_relaxed);
  turn_due_.store(false, std::memory_order_relaxed);
  kind_.store(Kind::kNone, std::memory_order_relaxed);
  return true;
}

const std::string* TraceWriter::WholeTrace() const noexcept {
  const Output* output = output_.load(std::memory_order_acquire);
  return output != nullptr && output->whole.load(std::memory_order_acquire) ? &output->file.path() : nullptr;
}

void TraceWriter::ResetInForkedChild() noexcept {
  if (Output* parents = output_.exchange(nullptr, std::memory_order_acq_rel)) parents->file.CloseInForkedChild();
  flush_now_.store(false, std::memory_order_relaxed);
  stop_requested_.store(false, std::memory_order_relaxed);
  turn_due_.store(false, std::memory_order_relaxed);
  kind_.store(Kind::kNone, std::memory_order_relaxed);
  turn_lock_.ResetInForkedChild();
}

}  // namespace rfinject
