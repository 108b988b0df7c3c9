// File: compiled_code.h
//
// Reads the modules that Inductor (torch.compile) generates, when the program loads them: which kernel is launched on
// which line, what it does, and for which modules of the program.
//
// Python tells its audit hooks of all that is compiled to bytecode, with its source; generated modules are told by
// their text. While Inductor itself is at work, its own objects say which module each operator came from. We only
// look at them: nothing of torch's is replaced, so what is generated, its files and the keys of its caches stay as
// they are.
#ifndef RFINJECT_INJECTOR_PYTHON_COMPILED_CODE_H_
#define RFINJECT_INJECTOR_PYTHON_COMPILED_CODE_H_

#include <string>
#include <string_view>

#include "collector/recorder.h"
#include "collector/source.h"
#include "injector/python/python_api.h"

namespace rfinject {

// From now on generated modules are read, for `source`. Called once an attachment, with the GIL held.
void WatchCompiledCode(Recorder& recorder, Source& source) noexcept;

// Reads the module in `path`, whose text is `source`, where Inductor has generated it; returns whether it has. While
// Inductor itself is at work, its objects are asked as well. The GIL is held. Not noexcept: see OnPythonCompiles.
bool ReadCompiledModule(const PythonApi& python, std::string_view source, const std::string& path);

// The step that runs compiles.
void NoteStepCompiles() noexcept;

// Takes the arguments of the audit event "compile". The GIL is held. Leaves no exception behind. Not noexcept: it
// runs Python code, from which a daemon thread may be ended.
void OnPythonCompiles(const PythonApi& python, PyObject* arguments);

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_PYTHON_COMPILED_CODE_H_
