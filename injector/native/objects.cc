#include "injector/native/objects.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

#include "injector/safe_read.h"

namespace rfinject {
namespace {

constexpr size_t kMaxHeaders = 32;  // program headers of one object; linkers make about a dozen

// glibc's struct dl_find_object for x86-64 (dlfcn.h since 2.35), which older headers lack.
struct FoundObject {
  unsigned long long flags;
  void* map_start;
  void* map_end;
  const link_map* map;
  void* eh_frame_hdr;
  unsigned long long reserved[7];
};
using FindObjectFunction = int (*)(void* address, FoundObject* result);

std::atomic<bool> g_list_wanted{false};
std::atomic<FindObjectFunction> g_find{nullptr};  // set by RefreshObjects: dlsym takes a lock

// Notes the segments that can be read. False if the search table is in none of them.
bool NoteSegments(const ElfW(Phdr) * headers, size_t count, LoadedObject* object) {
  object->segment_count = 0;
  for (size_t i = 0; i < count && object->segment_count < LoadedObject::kMaxSegments; ++i) {
    const ElfW(Phdr)& header = headers[i];
    if (header.p_type != PT_LOAD || (header.p_flags & PF_R) == 0) continue;
    const uintptr_t begin = object->bias + header.p_vaddr;
    object->segments[object->segment_count++] = {begin, begin + header.p_filesz};
  }
  return object->CanRead(object->unwind_table, 1);
}

bool AskLoader(FindObjectFunction find, uintptr_t address, LoadedObject* object) noexcept {
  FoundObject found;
  if (find(reinterpret_cast<void*>(address), &found) != 0 || found.eh_frame_hdr == nullptr || found.map == nullptr) {
    return false;
  }
  object->begin = reinterpret_cast<uintptr_t>(found.map_start);
  object->end = reinterpret_cast<uintptr_t>(found.map_end);
  object->bias = found.map->l_addr;
  object->unwind_table = reinterpret_cast<uintptr_t>(found.eh_frame_hdr);
  ElfW(Ehdr) header;
  if (!SafeReadValue(object->begin, &header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return false;
  if (header.e_phentsize != sizeof(ElfW(Phdr)) || header.e_phnum > kMaxHeaders) return false;
  ElfW(Phdr) headers[kMaxHeaders];
  const size_t size = header.e_phnum * sizeof(ElfW(Phdr));
  if (SafeRead(object->begin + header.e_phoff, headers, size) != size) return false;
  return NoteSegments(headers, header.e_phnum, object);
}

// --- The list, for an older glibc.

constexpr size_t kMaxObjects = 1024;
constexpr size_t kMaxLists = 256;  // lists that were outgrown are leaked, because a thread may be reading one
constexpr size_t kProofSize = 64;  // bytes of the search table: its addresses and first entries

struct ListedObject {
  LoadedObject object;
  unsigned char proof[kProofSize];
};
struct ObjectList {
  uint64_t adds = 0;
  uint64_t removes = 0;
  size_t count = 0;
  ListedObject objects[kMaxObjects];
};
std::atomic<const ObjectList*> g_list{nullptr};
std::atomic<size_t> g_lists{0};

// This runs with the loader's lock held, so the object is still loaded.
int ListObject(dl_phdr_info* info, size_t size, void* data) noexcept {
  auto* list = static_cast<ObjectList*>(data);
  if (size >= offsetof(dl_phdr_info, dlpi_subs) + sizeof(info->dlpi_subs)) {
    if (list->count == 0) {
      const ObjectList* last = g_list.load(std::memory_order_relaxed);
      if (last != nullptr && last->adds == info->dlpi_adds && last->removes == info->dlpi_subs) return 1;
    }
    list->adds = info->dlpi_adds;
    list->removes = info->dlpi_subs;
  }
  if (list->count == kMaxObjects) return 0;
  LoadedObject object;
  object.bias = info->dlpi_addr;
  object.begin = UINTPTR_MAX;
  size_t table_size = 0;
  for (size_t i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type == PT_LOAD) {
      object.begin = std::min(object.begin, object.bias + header.p_vaddr);
      object.end = std::max(object.end, object.bias + header.p_vaddr + header.p_memsz);
    } else if (header.p_type == PT_GNU_EH_FRAME) {
      object.unwind_table = object.bias + header.p_vaddr;
      table_size = header.p_memsz;
    }
  }
  if (table_size < kProofSize) return 0;
  if (!NoteSegments(info->dlpi_phdr, info->dlpi_phnum, &object)) return 0;
  ListedObject& listed = list->objects[list->count];
  listed.object = object;
  if (SafeRead(object.unwind_table, listed.proof, kProofSize) == kProofSize) ++list->count;
  return 0;
}

bool AskList(uintptr_t address, LoadedObject* object) noexcept {
  const ObjectList* list = g_list.load(std::memory_order_acquire);
  if (list == nullptr) return false;
  for (size_t i = 0; i < list->count; ++i) {
    const ListedObject& listed = list->objects[i];
    if (address < listed.object.begin || address >= listed.object.end) continue;
    unsigned char now[kProofSize];
    if (SafeRead(listed.object.unwind_table, now, kProofSize) != kProofSize) return false;
    if (std::memcmp(now, listed.proof, kProofSize) != 0) return false;
    *object = listed.object;
    return true;
  }
  return false;
}

// --- Files

struct Wanted {
  const LoadedObject* object;
  ObjectFile* file;
  bool found;
};

void ReadBuildId(const char* note, size_t size, std::string* text) {
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    std::memcpy(&header, note, sizeof header);
    const size_t name = (size_t{header.n_namesz} + 3) & ~size_t{3};
    const size_t value = (size_t{header.n_descsz} + 3) & ~size_t{3};
    if (name > size || value > size || sizeof header + name + value > size) return;
    const char* bytes = note + sizeof header + name;
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 && header.n_descsz <= 64 &&
        std::memcmp(note + sizeof header, "GNU", 4) == 0) {
      text->clear();
      for (size_t i = 0; i < header.n_descsz; ++i) {
        constexpr char kDigits[] = "0123456789abcdef";
        const auto byte = static_cast<unsigned char>(bytes[i]);
        *text += kDigits[byte >> 4];
        *text += kDigits[byte & 15];
      }
      return;
    }
    note += sizeof header + name + value;
    size -= sizeof header + name + value;
  }
}

int DescribeIfWanted(dl_phdr_info* info, size_t, void* data) noexcept try {
  auto* wanted = static_cast<Wanted*>(data);
  uintptr_t table = 0;
  for (size_t i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME) table = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
  }
  if (table != wanted->object->unwind_table || info->dlpi_addr != wanted->object->bias) return 0;
  wanted->file->path = info->dlpi_name != nullptr ? info->dlpi_name : "";
  for (size_t i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type != PT_NOTE) continue;
    ReadBuildId(reinterpret_cast<const char*>(info->dlpi_addr + header.p_vaddr), header.p_filesz,
                &wanted->file->build_id);
  }
  wanted->found = true;
  return 1;
} catch (...) {
  return 1;
}

}  // namespace

bool FindObject(uintptr_t address, LoadedObject* object) noexcept {
  const FindObjectFunction find = g_find.load(std::memory_order_acquire);
  return find != nullptr ? AskLoader(find, address, object) : AskList(address, object);
}

void RefreshObjects() noexcept {
  if (g_find.load(std::memory_order_relaxed) == nullptr && !g_list_wanted.load(std::memory_order_relaxed)) {
    g_find.store(reinterpret_cast<FindObjectFunction>(dlsym(RTLD_DEFAULT, "_dl_find_object")),
                 std::memory_order_release);
  }
  if (g_find.load(std::memory_order_relaxed) != nullptr || g_lists.load(std::memory_order_relaxed) >= kMaxLists)
    return;
  auto* list = new (std::nothrow) ObjectList;
  if (list == nullptr) return;
  if (dl_iterate_phdr(&ListObject, list) != 0) {
    delete list;  // nothing has changed
    return;
  }
  g_lists.fetch_add(1, std::memory_order_relaxed);
  g_list.store(list, std::memory_order_release);
}

void UseObjectList() noexcept {
  g_list_wanted.store(true, std::memory_order_relaxed);
  g_find.store(nullptr, std::memory_order_relaxed);
  RefreshObjects();
}

bool DescribeObject(const LoadedObject& object, ObjectFile* file) {
  Wanted wanted{&object, file, false};
  dl_iterate_phdr(&DescribeIfWanted, &wanted);
  if (!wanted.found) return false;
  if (file->path.empty()) {  // the program itself
    char path[PATH_MAX];
    const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
    if (size > 0) file->path.assign(path, static_cast<size_t>(size));
  }
  return true;
}

}  // namespace rfinject
