// File: objects.h
//
// Finds the ELF object of this process that an address lies in. It is asked from places where the loader's lock must
// not be taken: a thread that holds that lock may wait for what our caller holds.
//
// glibc 2.35 and later answer without a lock (_dl_find_object). For an older glibc RefreshObjects makes a list at
// safe places. An entry of it is compared with memory before it is believed, since another object may have taken the
// place of the one that was listed.
#ifndef RFINJECT_INJECTOR_NATIVE_OBJECTS_H_
#define RFINJECT_INJECTOR_NATIVE_OBJECTS_H_

#include <climits>
#include <cstddef>
#include <cstdint>
#include <string>

namespace rfinject {

struct LoadedObject {
  uintptr_t begin = 0;  // of its mapping
  uintptr_t end = 0;
  uintptr_t bias = 0;          // what the loader added to the file's addresses
  uintptr_t unwind_table = 0;  // .eh_frame_hdr: the search table of its call frame information

  // The parts of it that are mapped and can be read.
  struct Segment {
    uintptr_t begin = 0;
    uintptr_t end = 0;
  };
  static constexpr size_t kMaxSegments = 8;  // linkers make four or five
  size_t segment_count = 0;
  Segment segments[kMaxSegments] = {};

  bool CanRead(uintptr_t address, size_t size) const noexcept {
    for (size_t i = 0; i < segment_count; ++i) {
      if (address >= segments[i].begin && address < segments[i].end && size <= segments[i].end - address) return true;
    }
    return false;
  }
};

// Returns false for an address in no object, or in one that cannot be unwound. It takes no lock, allocates nothing
// and never faults; the caller must have a frame of its own in the object (a return address on its stack), which
// keeps it loaded.
bool FindObject(uintptr_t address, LoadedObject* object) noexcept;

// Called where locks may be taken: at the beginning, and between steps. Does nothing where FindObject needs no list.
void RefreshObjects() noexcept;

// For tests: makes FindObject work as if glibc were older than 2.35.
void UseObjectList() noexcept;

// Which file the object is. DescribeObject takes the loader's lock and allocates, so it is not for the launch path.
struct ObjectFile {
  std::string path;
  std::string build_id;  // hexadecimal; empty if it has none
};
bool DescribeObject(const LoadedObject& object, ObjectFile* file);

}  // namespace rfinject

#endif  // RFINJECT_INJECTOR_NATIVE_OBJECTS_H_
