// File: python_frames.h
//
// Reads, without the GIL, the line of the program that the calling thread's Python code is at; and, with the GIL, the
// objects that its methods are called on.
//
// Torch releases the GIL before it runs an operator, and a launch may not take it. But a thread that is inside a C
// function does not change its frames, no other thread changes them, and the frames keep their code objects alive. So
// we read the thread's own chain of frames in the interpreter's memory. Its place differs by version
// (python_frames.cc). Before it is trusted, what is read there is compared with what Python says of its frames
// (f_back, f_code, f_lineno).
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

// A text of bounded length, in UTF-8. A text that is too long loses its beginning.
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

// Must be called once, when torch has been imported, with the GIL held. It runs Python code of ours to compare with.
// Returns false, with the reason in `*why` (a literal), where lines cannot be read.
bool InitPythonFrames(const PythonApi& python, const char** why);

// Reads the line of the calling thread's innermost frame of the program's own code: code in a file that is neither
// torch's, nor the standard library's, nor in a folder site-packages or dist-packages, nor made at run time
// (torch.compile's, torch.fx's). Where there is no such frame, it takes the innermost in site-packages that is not
// torch's: the program is then an installed package. Returns false where there is neither, or no Python on this
// thread. Any thread may call this, without the GIL; it takes no lock and allocates nothing.
bool ReadProgramLine(ProgramLine* line) noexcept;

// The name of a frame's file.
class FileName {
 public:
  FileName(size_t length, uint32_t (*character)(PyObject*, Py_ssize_t), PyObject* text)
      : length_(length), character_(character), text_(text) {}
  // Whether it is `path`, which must be ASCII. Looks from the end, where names of generated files differ.
  bool Is(std::string_view path) const noexcept;

 private:
  size_t length_;
  uint32_t (*character_)(PyObject*, Py_ssize_t);
  PyObject* text_;
};

// Returns the line of the innermost frame of the calling thread for whose file `is_wanted(context, file)` is true,
// among the innermost `most`; 0 where there is none. Any thread may call this, without the GIL; it takes no lock and
// allocates nothing.
uint32_t LineInFile(size_t most, bool (*is_wanted)(void* context, const FileName& file), void* context) noexcept;

// A function that the calling thread is inside of, and its first argument: the object of a method, or the first of
// `*arguments`. The argument is empty where there is none, or where it cannot be told: before Python 3.11 where an
// inner function uses it.
struct PythonCall {
  Ref code;
  Ref first;
};
// Returns the functions of the calling thread, innermost first, `most` at most; nothing where frames cannot be read.
// The GIL must be held. Runs no Python code of the program's.
std::vector<PythonCall> CallsOfThread(const PythonApi& python, size_t most);
// Whether CallsOfThread can tell: frames can be read, and arguments are where this version should have them.
bool CallsAreKnown() noexcept;

// --- For tests.

enum class FileOwner : uint8_t { kProgram, kPackage, kMachinery };
struct ProgramFolders {
  std::string_view main;     // of the script; may be empty, as the others
  std::string_view library;  // of Python's own modules
  std::string_view torch;
};
// Those of this program; empty before InitPythonFrames, and where frames cannot be read.
ProgramFolders FoldersOfProgram() noexcept;
FileOwner OwnerOfFile(std::string_view path, const ProgramFolders& folders) noexcept;

// Returns the path as the trace has it: below the main script's folder the part from there on, else its last two
// parts. So a trace tells nothing of home folders, and the same program has the same paths everywhere.
std::string_view ShownPath(std::string_view path, const ProgramFolders& folders) noexcept;

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_PYTHON_PYTHON_FRAMES_H_
