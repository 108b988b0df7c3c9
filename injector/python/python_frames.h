// File: python_frames.h
//
// Which line of the program the calling thread's Python code is at, read without the GIL; and which objects its
// methods are called on.
//
// Torch gives the GIL back before it runs an operator, and a launch may not take it. But a thread that is inside of a
// C function changes none of its frames, nobody else does, and the frames keep their code objects alive. So we read
// the thread's own chain of frames where the interpreter has it. Where that is differs by version (python_frames.cc);
// it is compared with what Python code is told (f_back, f_code, f_lineno) before it is believed.
#ifndef RFINJECT_INJECTOR_PYTHON_PYTHON_FRAMES_H_
#define RFINJECT_INJECTOR_PYTHON_PYTHON_FRAMES_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "injector/python/python_api.h"
#include "injector/python/ref.h"

namespace rfinject {

// A text of bounded length, in UTF-8. Of a longer one the end is kept.
class ShortText {
 public:
  std::string_view view() const { return {text_.data(), size_}; }
  void clear() { size_ = 0; }
  void Append(uint32_t code_point);
  void Assign(std::string_view text) {
    size_ = std::min(text.size(), text_.size());
    std::copy_n(text.data() + (text.size() - size_), size_, text_.data());
  }

 private:
  std::array<char, 512> text_;
  size_t size_ = 0;
};

struct ProgramLine {
  ShortText file;      // as a trace is to have it: ShownPath()
  ShortText function;  // its qualified name from Python 3.11 on; "<module>" outside of all
  uint32_t line = 0;   // from 1
};

// Once, when torch has been imported. GIL held. Runs Python code of ours to compare with. False, with the reason in
// `*why` (a literal), where lines cannot be read.
bool InitPythonFrames(const PythonApi& python, const char** why);

// The line of the innermost frame of the calling thread that is the program's own. That is code in a file that is
// neither torch's, nor the standard library's, nor in a folder site-packages or dist-packages, nor made at run time
// (torch.compile's, torch.fx's). Where no frame is such, the innermost that is in site-packages but not torch's: a
// program that is an installed package. False where there is none, or no Python on this thread. Any thread, no GIL;
// takes no lock and allocates nothing.
bool ReadProgramLine(ProgramLine* line) noexcept;

// A function that the calling thread is inside of, and what it was called with first: of a method its object, of a
// function with `*arguments` alone the first of them. Empty where there is no such argument, or where it cannot be
// told: before Python 3.11 that of a function in which another one uses it.
struct PythonCall {
  Ref code;
  Ref first;
};
// The functions of the calling thread, innermost first, `most` at most. Empty where frames cannot be read. GIL held.
// Runs no Python code of the program's.
std::vector<PythonCall> CallsOfThread(const PythonApi& python, size_t most);
// Whether they can be told: frames can be read, and arguments are where this version should have them.
bool CallsAreKnown() noexcept;

// --- For tests.

enum class FileOwner : uint8_t { kProgram, kPackage, kMachinery };
struct ProgramFolders {
  std::string_view main;     // of the script; may be empty, as the others
  std::string_view library;  // of Python's own modules
  std::string_view torch;
};
FileOwner OwnerOfFile(std::string_view path, const ProgramFolders& folders) noexcept;

// Below the main script's folder the path from there on; else the last two parts of it. So a trace does not tell of
// home folders, and the same program says the same everywhere.
std::string_view ShownPath(std::string_view path, const ProgramFolders& folders) noexcept;

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_PYTHON_PYTHON_FRAMES_H_
