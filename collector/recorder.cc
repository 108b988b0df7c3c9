#include "collector/recorder.h"

#include <new>

#include "collector/record/trace_recorder.h"
#include "collector/settings.h"

namespace rfinject {

Recorder& Recorder::Get() noexcept {
  // The recorder is in static storage and never destroyed: threads and exit handlers of the program record until the
  // very end, and an allocation could fail.
  alignas(TraceRecorder) static unsigned char storage[sizeof(TraceRecorder)];
  static TraceRecorder* const recorder = new (storage) TraceRecorder(GetSettings());
  return *recorder;
}

}  // namespace rfinject
