// File: door.h
//
// The way into a Python process: an audit hook, from before the interpreter starts, waits for the first import of
// torch and carries it out itself; when torch is there, Attach() is called before the program's own import statement
// returns. Nothing of this can be seen from Python: no finder on sys.meta_path, no loader, no variable.
//
// What the hook cannot catch (importlib.import_module("torch") raises no audit event for torch itself; a process that
// we entered late) is caught by pending calls. A virtual GPU, which must be there before torch's libraries are, is
// then offered when torch/__init__.py imports the first module of its own, which does raise an event.
#ifndef RFINJECT_INJECTOR_PYTHON_DOOR_H_
#define RFINJECT_INJECTOR_PYTHON_DOOR_H_

namespace rfinject {

// Called by the library's constructor, before Py_Initialize; `add_audit_hook` is PySys_AddAuditHook.
void OpenEarlyDoor(void* add_audit_hook) noexcept;

// May be called by any thread, at any time, without the GIL, if OpenEarlyDoor was not called. As soon as the
// interpreter runs a pending call, it looks whether torch is there, and waits for it otherwise. Does nothing where
// there is no Python.
void OpenLateDoor() noexcept;

// Called with the GIL held, in a process that the library was brought into while it ran. Shuts the door, so that
// nothing else attaches. Returns null, or why that cannot be: a clause about the process.
const char* TakeRunningPython();

// True where neither of the first two was called, or where OpenLateDoor found no Python.
bool DoorIsClosed() noexcept;

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_PYTHON_DOOR_H_
