// Binds a library to old versions of glibc's symbols, so that it loads wherever the program runs: the static C++
// runtime and our own code, which are compiled against a newer glibc, would otherwise need that glibc's versions.
// integration_tests/check_exports.py holds the result against the limit.
//
// A function defined here, hidden, takes the place of glibc's of the same name in everything that is linked into the
// library; it calls glibc's oldest version of it. Before glibc 2.34 these functions were in libpthread and libdl, so
// the library must name both as needed, although they are empty today.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#if defined(__x86_64__)
#define BASE "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define BASE "GLIBC_2.17"
#else
#error "the oldest glibc version of this architecture is needed here"
#endif

// glibc declares that pthread_setspecific reads what its value points to; it only keeps the pointer.
#ifndef __clang__  // which does not know the warning
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#define HIDDEN __attribute__((visibility("hidden")))
#define OLD(result, name, arguments)                \
  __asm__(".symver old_" #name "," #name "@" BASE); \
  extern result old_##name arguments
#define FORWARD(result, name, arguments, call) \
  OLD(result, name, arguments);                \
  HIDDEN result name arguments { return old_##name call; }

FORWARD(int, pthread_create,
        (pthread_t * thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument),
        (thread, attributes, start, argument))
FORWARD(int, pthread_detach, (pthread_t thread), (thread))
FORWARD(int, pthread_join, (pthread_t thread, void** result), (thread, result))
FORWARD(int, pthread_once, (pthread_once_t * control, void (*routine)(void)), (control, routine))
FORWARD(int, pthread_key_create, (pthread_key_t * key, void (*destructor)(void*)), (key, destructor))
FORWARD(int, pthread_key_delete, (pthread_key_t key), (key))
FORWARD(int, pthread_setspecific, (pthread_key_t key, const void* value), (key, value))
FORWARD(void*, pthread_getspecific, (pthread_key_t key), (key))
FORWARD(int, pthread_mutex_trylock, (pthread_mutex_t * mutex), (mutex))
FORWARD(int, pthread_sigmask, (int how, const sigset_t* set, sigset_t* old), (how, set, old))
FORWARD(int, pthread_getattr_np, (pthread_t thread, pthread_attr_t* attributes), (thread, attributes))
FORWARD(int, pthread_attr_getstack, (const pthread_attr_t* attributes, void** begin, size_t* size),
        (attributes, begin, size))
FORWARD(void*, dlopen, (const char* path, int mode), (path, mode))
FORWARD(int, dlclose, (void* handle), (handle))
FORWARD(char*, dlerror, (void), ())
FORWARD(int, dladdr, (const void* address, Dl_info* info), (address, info))

// Before glibc 2.33 programs held a fstat of their own, which called this with the version of their struct stat.
#if defined(__x86_64__)
#define STAT_VERSION 1
#else
#define STAT_VERSION 0
#endif
OLD(int, __fxstat, (int version, int file, struct stat* status));
HIDDEN int fstat(int file, struct stat* status) { return old___fxstat(STAT_VERSION, file, status); }

// dlsym looks at where it was called from (RTLD_NEXT, RTLD_DEFAULT), which is this library in either case.
FORWARD(void*, dlsym, (void* restrict handle, const char* restrict name), (handle, name))

// libstdc++ asks whether threads exist by the address of this weak symbol.
HIDDEN int __pthread_key_create(pthread_key_t* key, void (*destructor)(void*)) {
  return old_pthread_key_create(key, destructor);
}

// glibc has this since 2.32. While it is true, libstdc++ counts references without atomics, so false is always right.
HIDDEN char __libc_single_threaded = 0;

#if defined(DLFO_STRUCT_HAS_EH_DBASE)
// glibc has this since 2.35; libgcc's unwinder finds the unwind table of an address by it, and has no other way
// compiled in. So this is a whole implementation over the older dl_iterate_phdr. It is slower by microseconds, for
// exceptions in this library only.
struct search {
  uintptr_t address;
  struct dl_find_object* result;
};

static int look_at_object(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size;
  struct search* search = data;
  uintptr_t start = UINTPTR_MAX, end = 0;
  const void* eh_frame = NULL;
  int found = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* header = &info->dlpi_phdr[i];
    const uintptr_t from = info->dlpi_addr + header->p_vaddr;
    const uintptr_t to = from + header->p_memsz;
    if (header->p_type == PT_GNU_EH_FRAME) eh_frame = (const void*)from;
    if (header->p_type != PT_LOAD) continue;
    if (from < start) start = from;
    if (to > end) end = to;
    if (search->address >= from && search->address < to) found = 1;
  }
  if (!found) return 0;
  search->result->dlfo_flags = 0;
  search->result->dlfo_map_start = (void*)start;
  search->result->dlfo_map_end = (void*)end;
  search->result->dlfo_link_map = NULL;
  search->result->dlfo_eh_frame = (void*)eh_frame;
  return eh_frame != NULL ? 1 : 2;
}

HIDDEN int _dl_find_object(void* address, struct dl_find_object* result) {
  struct search search = {(uintptr_t)address, result};
  return dl_iterate_phdr(&look_at_object, &search) == 1 ? 0 : -1;
}
#endif
