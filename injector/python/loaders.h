// File: loaders.h
//
// What the DataLoader that the program asked last says of its batches. The GIL is held throughout. Nothing here runs
// code of the program's.
#ifndef RFINJECT_INJECTOR_PYTHON_LOADERS_H_
#define RFINJECT_INJECTOR_PYTHON_LOADERS_H_

#include <cstdint>

#include "injector/python/python_api.h"

namespace rfinject {

// Notes the loader whose scope is opened: the first argument of the calling thread's innermost Python function is its
// iterator. Leaves no exception behind.
void NoteLoader(const PythonApi& python);

// The batch size of the loader that was noted last; 0 where it makes no batches, or where that cannot be told.
uint64_t LoaderBatch() noexcept;

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_PYTHON_LOADERS_H_
