// File: writer.h
//
// TraceWriter writes what is new about once a second, and more seldom as a run ages (chunk_schedule.h). After Open
// only the writer touches the file, the frame buffer and the consumer's side of the rings, the last writing at the
// program's end included. The writer is a thread of ours: Stop asks it for the last writing and waits, but not for
// ever, so a disk that hangs holds up no program.
//
// A program of one thread has no such thread. A second thread would cost it what glibc leaves out for the first alone
// (atomics in malloc and in every lock: 5 % of a step of tiny layers), and Python 3.12 warns of each fork in a
// process of several. There the thread that records is also the writer, in EndStep and MayWrite, while turn_lock_ is
// held. It ceases to be the writer when the program has threads of its own, or when several turns in a row took so
// long that the program would feel it. It never is the writer where a GPU is measured or where the file lies on a
// disk that may hang (TraceFile::MayHang).
#ifndef RFINJECT_COLLECTOR_RECORD_WRITER_H_
#define RFINJECT_COLLECTOR_RECORD_WRITER_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "collector/record/control_file.h"
#include "collector/record/diagnostic_log.h"
#include "collector/record/rings.h"
#include "collector/record/state.h"
#include "collector/record/trace_file.h"
#include "collector/sync.h"
#include "proto/wire/encoder.h"

namespace rfinject {

class TraceWriter {
 public:
  // The recorder owns all of these and is never destroyed.
  TraceWriter(RecorderState* state, Rings* rings, DiagnosticLog* log) : state_(state), rings_(rings), log_(log) {}

  // Opens the trace, in `fd` or, if that is negative, in the settings' output, and begins to write. On failure the
  // recorder is muted, with a line on standard error. Called under the recorder's activation lock.
  void Open(int fd) noexcept;
  // Lets a calling thread that is the writer write what is due; otherwise costs one load.
  void MayWrite() noexcept {
    if (kind_.load(std::memory_order_relaxed) == Kind::kCaller) [[unlikely]]
      WriteIfDue();
  }
  // Lets a calling thread that is the writer look at the control file, about once a second. `now` is in ns of the
  // monotonic clock.
  void MayLookForRequest(int64_t now) noexcept;
  // Has the rings drained soon. Safe in a signal handler.
  void Wake() noexcept;
  // Has everything written soon.
  void FlushSoon() noexcept {
    flush_now_.store(true, std::memory_order_relaxed);
    if (state_->active()) Wake();
  }
  // Has everything written, and waits until it is, for a bounded time.
  void WriteNow() noexcept;
  // Ends the recording in `mode`, and waits, for a bounded time, until the file is whole. The first `reason` counts,
  // cut to 240 bytes.
  void Stop(RecorderState::Mode mode, std::string_view reason) noexcept;
  // Forgets the trace that was written last, if it is closed. Returns false where it is not: a disk may hang.
  bool BeginAgain() noexcept;
  // Returns the path of the trace if it is whole, else null.
  const std::string* WholeTrace() const noexcept;

  // Lets go of the parent's file without looking at it: threads that do not exist in the child may have been using
  // it.
  void ResetInForkedChild() noexcept;

 private:
  enum class Kind : uint8_t { kNone, kCaller, kThread };

  // What belongs to one file. A forked child leaks its parent's.
  struct Output {
    Output() noexcept : frame(FrameBuilder::kFrameLimit) {}
    TraceFile file;
    wire::Encoder frame;
    int64_t begun_ns = 0;  // monotonic
    ControlFile control;
    bool limit_said = false;
    // When the next chunk is due and when `control` is looked at next, in ns of the monotonic clock. The writer
    // writes them; callers read them to learn whether they are to write. Relaxed: what is late is done at the next
    // call.
    std::atomic<int64_t> next_chunk_ns{0}, next_look_ns{0};
    // The file has its End. The writer releases it, the thread that finishes acquires it before it reads file.path().
    std::atomic<bool> whole{false};
    Event stopped;             // signalled once, when the file is closed
    Output* before = nullptr;  // of the recording before
  };

  bool MeasuresAGpu() noexcept;
  // Makes a writer: the callers, or a thread of ours. False if there can be none.
  bool Start(bool callers_may_write) noexcept RFINJECT_REQUIRES(turn_lock_);
  bool StartThread() noexcept RFINJECT_REQUIRES(turn_lock_);
  static void* ThreadMain(void* self) noexcept;
  void Loop(Output* output) noexcept;
  void WriteIfDue() noexcept;
  void WriteLastIfCaller(Output* output) noexcept;

  // For the writer: one round of its work, and the last one.
  void WriteTurn(Output* output) noexcept;
  void WriteLast(Output* output) noexcept;
  // Writes everything that is waiting; with `last`, even if recording is over.
  bool Flush(Output* output, bool last) noexcept;
  bool BuildFrame(Output* output, bool last, bool* more) noexcept;
  bool WriteFrame(Output* output) noexcept;
  // Returns when the chunk after one of `chunk_bytes` bytes is due; says so when the trace comes near its limit.
  int64_t NextChunkNs(Output* output, uint64_t chunk_bytes) noexcept;
  void LookForRequest(Output* output) noexcept;

  RecorderState* const state_;
  Rings* const rings_;
  DiagnosticLog* const log_;
  // The thread that activates releases it when its file is open; every thread acquires it, and so sees the file.
  std::atomic<Output*> output_{nullptr};
  Output* before_ = nullptr;  // of recordings before
  // Held by a caller that does the writer's work, and by whoever makes or changes the writer.
  Mutex turn_lock_;
  int long_turns_ RFINJECT_GUARDED_BY(turn_lock_) = 0;  // turns of callers, in a row, that took too long
  // Who does the writer's work. Written under turn_lock_; read without it as a hint, and again under it by a caller
  // before it writes. Relaxed, since the lock orders the rest.
  std::atomic<Kind> kind_{Kind::kNone};
  // A caller that writes is to take its turn. Any thread sets it, also in a signal handler; the caller that writes
  // takes it back. Relaxed: what is late is done at the next call.
  std::atomic<bool> turn_due_{false};
  Event wake_;     // wakes the thread that writes
  Event written_;  // signalled when a turn has written a chunk
  // The next turn writes a chunk. The thread that ends a step sets it, the writer takes it back. Relaxed, as above.
  std::atomic<bool> flush_now_{false};
  // Whether the recording was ended. Threads that end it exchange it (acq_rel), so that one of them sets the reason.
  std::atomic<bool> stop_requested_{false};
  std::string_view stop_reason_;  // into stop_reason_text_; written before the mode, read by the writer after it
  char stop_reason_text_[240];
};

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_RECORD_WRITER_H_
