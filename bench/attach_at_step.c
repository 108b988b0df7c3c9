// Preloaded by bench/detached_instructions: has callgrind count a program's steps before rfinject is attached to it
// and after it has left again. A step is a call of poll (integration_tests/libtorch/resnet.cc), or of bench_step,
// with the GIL held.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <valgrind/callgrind.h>

enum { kWarmUp = 4, kCounted = 4, kAttached = 4, kSettled = 2 };

static void Call(const char* function, int settings) {
  void* library = dlopen(getenv("BENCH_LIBRARY"), RTLD_NOW | RTLD_GLOBAL);
  const char* (*call)(const char*) = library != NULL ? dlsym(library, function) : NULL;
  if (call == NULL) fprintf(stderr, "%s\n", dlerror()), exit(2);
  // An entry a setting, and an empty one at the end.
  static char text[4096];
  if (settings) snprintf(text, sizeof text - 1, "%s", getenv("BENCH_SETTINGS"));
  for (char* at = text; *at != '\0'; ++at) {
    if (*at == ' ') *at = '\0';
  }
  const char* why = call(text);
  if (*why != '\0') fprintf(stderr, "%s: %s\n", function, why), exit(2);
}

// Returns whether the program is to go on.
int bench_step(void) {
  static int step = 0;
  const int begin = kWarmUp + kCounted + kAttached + kSettled;
  const int now = step++;
  if (now == kWarmUp || now == begin) {
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
  }
  if (now == kWarmUp + kCounted) {
    CALLGRIND_DUMP_STATS_AT("before");
    CALLGRIND_STOP_INSTRUMENTATION;
    Call("rfinject_attach", 1);
  }
  if (now == kWarmUp + kCounted + kAttached) Call("rfinject_detach", 0);
  if (now == begin + kCounted) CALLGRIND_DUMP_STATS_AT("after");
  return now < begin + kCounted;
}

// The C++ program's standard input has ended, or has nothing.
int poll(struct pollfd* files, nfds_t count, int timeout) {
  static int (*next)(struct pollfd*, nfds_t, int) = NULL;
  if (next == NULL) next = dlsym(RTLD_NEXT, "poll");
  if (count != 1 || files->fd != 0) return next(files, count, timeout);
  return bench_step() ? 0 : next(files, count, timeout);
}
