// File: source_line.h
//
// The line of the program that a launch comes from, taken once for each launch key. Only the injector can tell; the
// collector asks through one function pointer, as for the site (site.h).
#ifndef RFINJECT_COLLECTOR_SOURCE_LINE_H_
#define RFINJECT_COLLECTOR_SOURCE_LINE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "collector/site.h"

namespace rfinject {

class Recorder;

// Sets `*line` to the number that Recorder::DefineSourceLine gave to the line that the calling thread's launch at
// `site` comes from; 0 where there is none. Returns false when it cannot be told now: the next launch may ask again.
// It waits for no other thread, takes no GIL, runs no code of the program's and calls nothing of CUDA, because it
// runs inside the launch callback.
using SourceLineFunction = bool (*)(const Site& site, Recorder& recorder, uint32_t* line) noexcept;

// Null where lines cannot be told.
inline std::atomic<SourceLineFunction> g_source_line{nullptr};

// Writes the line of the program that the calling thread is at, as "train.py:12", with a 0 at its end; a text that is
// too long is cut. Returns false where there is none. The same holds for it.
using ProgramLineFunction = bool (*)(char* text, size_t size) noexcept;

// Null where lines cannot be told.
inline std::atomic<ProgramLineFunction> g_program_line{nullptr};

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_SOURCE_LINE_H_
