// A second profiler in the way of those that follow allocations: it stands in front of malloc and free, takes a lock
// in each of them and around every fork, has a thread of its own that takes the same lock, and interrupts the program
// a thousand times a second. It can be opened as an injection library of CUDA's, too.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

extern void* __libc_malloc(size_t);
extern void __libc_free(void*);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int inside;
static volatile unsigned long allocations, ticks;

static void Count(void) {
  if (inside) return;
  inside = 1;
  pthread_mutex_lock(&lock);
  ++allocations;
  pthread_mutex_unlock(&lock);
  inside = 0;
}

void* malloc(size_t size) {
  Count();
  return __libc_malloc(size);
}
void free(void* pointer) {
  Count();
  __libc_free(pointer);
}

static void Before(void) {
  inside = 1;
  pthread_mutex_lock(&lock);
}
static void After(void) {
  pthread_mutex_unlock(&lock);
  inside = 0;
}

static void* Watch(void* unused) {
  const struct timespec pause = {0, 1000000};
  inside = 1;
  for (;;) {
    pthread_mutex_lock(&lock);
    ++ticks;
    pthread_mutex_unlock(&lock);
    nanosleep(&pause, NULL);
  }
  return unused;
}

static void Tick(int signal) {
  (void)signal;
  ++ticks;
}

__attribute__((constructor)) static void Start(void) {
  pthread_atfork(Before, After, After);
  pthread_t thread;
  pthread_create(&thread, NULL, Watch, NULL);
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = Tick;
  action.sa_flags = SA_RESTART;
  sigaction(SIGPROF, &action, NULL);
  const struct itimerval every = {{0, 1000}, {0, 1000}};
  setitimer(ITIMER_PROF, &every, NULL);
}

int InitializeInjection(void) { return 1; }
