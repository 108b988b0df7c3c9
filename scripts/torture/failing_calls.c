// Makes one call of the library fail. Preloaded before it: of each call that comes from librfinject.so, and of no
// other, this counts which one it is, and makes the one that is asked for fail.
//
//   TORTURE_LIST=FILE   writes "NUMBER NAME" of each call, one a line
//   TORTURE_FAIL=N      the N-th call fails, with
//   TORTURE_ERRNO=E     this errno; for an allocation always ENOMEM
//   TORTURE_KIND=calls|memory   what is counted
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <unistd.h>

static uintptr_t library_begin, library_end;
static long fail_at = -1, counted = 0;
static int fail_errno = EIO, list = -1, memory = 0, ready = 0;

// Not through libc, whose functions stand below.
static long Raw(long number, long a, long b, long c, long d) {
  long result;
  register long fourth __asm__("r10") = d;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                   : "rcx", "r11", "memory");
  return result;
}

static int Look(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size;
  (void)data;
  if (info->dlpi_name == NULL || strstr(info->dlpi_name, "librfinject.so") == NULL) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* segment = &info->dlpi_phdr[i];
    if (segment->p_type != PT_LOAD) continue;
    const uintptr_t begin = info->dlpi_addr + segment->p_vaddr;
    if (library_begin == 0 || begin < library_begin) library_begin = begin;
    if (begin + segment->p_memsz > library_end) library_end = begin + segment->p_memsz;
  }
  return 1;
}

// Counts from here on, by what the variables are now.
void torture_begin(void) {
  const char* text = getenv("TORTURE_FAIL");
  if (text != NULL) fail_at = atol(text);
  text = getenv("TORTURE_ERRNO");
  if (text != NULL) fail_errno = atoi(text);
  text = getenv("TORTURE_KIND");
  memory = text != NULL && strcmp(text, "memory") == 0;
  text = getenv("TORTURE_LIST");
  if (text != NULL) list = (int)Raw(SYS_openat, AT_FDCWD, (long)text, O_WRONLY | O_CREAT | O_APPEND, 0600);
  __atomic_store_n(&counted, 0, __ATOMIC_RELAXED);
}

__attribute__((constructor)) static void Start(void) {
  torture_begin();
  dl_iterate_phdr(Look, NULL);
  __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
}

// Whether this call, which returns to `caller`, is to fail; sets errno then.
static int Fails(const void* caller, const char* name, int is_memory) {
  if (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE) || is_memory != memory) return 0;
  if (library_begin == 0) dl_iterate_phdr(Look, NULL);  // our constructor ran before the library was mapped
  const uintptr_t from = (uintptr_t)caller;
  if (from < library_begin || from >= library_end) return 0;
  const long number = __atomic_add_fetch(&counted, 1, __ATOMIC_RELAXED);
  if (list >= 0) {
    char line[128];
    const int size = snprintf(line, sizeof line, "%ld %s\n", number, name);
    Raw(SYS_write, list, (long)line, size, 0);
  }
  if (number != fail_at) return 0;
  errno = is_memory ? ENOMEM : fail_errno;
  return 1;
}

#define CALLER __builtin_return_address(0)
#define REAL(name)               \
  static __typeof__(&name) real; \
  if (real == NULL) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name);
#define WRAP(type, name, parameters, arguments, failed) \
  type name parameters {                                \
    REAL(name)                                          \
    if (Fails(CALLER, #name, 0)) return failed;         \
    return real arguments;                              \
  }

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  REAL(open)
  if (Fails(CALLER, "open", 0)) return -1;
  return real(path, flags, mode);
}
int openat(int folder, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  REAL(openat)
  if (Fails(CALLER, "openat", 0)) return -1;
  return real(folder, path, flags, mode);
}
int fcntl(int fd, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void* argument = va_arg(rest, void*);
  va_end(rest);
  REAL(fcntl)
  if (Fails(CALLER, "fcntl", 0)) return -1;
  return real(fd, command, argument);
}
WRAP(ssize_t, read, (int fd, void* to, size_t size), (fd, to, size), -1)
WRAP(ssize_t, write, (int fd, const void* from, size_t size), (fd, from, size), -1)
int close(int fd) {  // a close that fails has closed, on Linux
  REAL(close)
  const int fails = Fails(CALLER, "close", 0);
  const int result = real(fd);
  return fails ? -1 : result;
}
long syscall(long number, ...) {
  va_list rest;
  va_start(rest, number);
  long a[6];
  for (int i = 0; i < 6; ++i) a[i] = va_arg(rest, long);
  va_end(rest);
  REAL(syscall)
  char name[32] = "syscall";
  if (__atomic_load_n(&ready, __ATOMIC_ACQUIRE)) snprintf(name, sizeof name, "syscall %ld", number);
  if (number != SYS_exit_group && Fails(CALLER, name, 0)) return -1;
  return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
WRAP(int, ftruncate, (int fd, off_t size), (fd, size), -1)
WRAP(int, mkdirat, (int folder, const char* path, mode_t mode), (folder, path, mode), -1)
WRAP(ssize_t, readlinkat, (int folder, const char* path, char* to, size_t size), (folder, path, to, size), -1)
WRAP(ssize_t, readlink, (const char* path, char* to, size_t size), (path, to, size), -1)
WRAP(ssize_t, pread, (int fd, void* to, size_t size, off_t at), (fd, to, size, at), -1)
WRAP(void*, mmap, (void* at, size_t size, int protection, int flags, int fd, off_t offset),
     (at, size, protection, flags, fd, offset), MAP_FAILED)
WRAP(int, uname, (struct utsname * name), (name), -1)
WRAP(int, sysinfo, (struct sysinfo * info), (info), -1)
WRAP(int, sched_getaffinity, (pid_t pid, size_t size, cpu_set_t* set), (pid, size, set), -1)
WRAP(char*, getcwd, (char* to, size_t size), (to, size), NULL)
WRAP(int, pipe2, (int ends[2], int flags), (ends, flags), -1)
WRAP(ssize_t, process_vm_readv,
     (pid_t pid, const struct iovec* local, unsigned long locals, const struct iovec* remote, unsigned long remotes,
      unsigned long flags),
     (pid, local, locals, remote, remotes, flags), -1)
WRAP(int, pthread_create,
     (pthread_t * thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument),
     (thread, attributes, start, argument), EAGAIN)

// Allocations: operator new of the static libstdc++ in the library comes here, too.
extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);
void* malloc(size_t size) { return Fails(CALLER, "malloc", 1) ? NULL : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return Fails(CALLER, "calloc", 1) ? NULL : __libc_calloc(count, size); }
void* realloc(void* old, size_t size) { return Fails(CALLER, "realloc", 1) ? NULL : __libc_realloc(old, size); }
void* aligned_alloc(size_t alignment, size_t size) {
  return Fails(CALLER, "aligned_alloc", 1) ? NULL : __libc_memalign(alignment, size);
}
int posix_memalign(void** out, size_t alignment, size_t size) {
  if (Fails(CALLER, "posix_memalign", 1)) return ENOMEM;
  *out = __libc_memalign(alignment, size);
  return *out == NULL ? ENOMEM : 0;
}
