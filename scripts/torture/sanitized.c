// Built with a sanitizer by neighbours: allocates, runs two threads that take turns, and ends with an exit code of
// its own.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int* counts;

static void* Count(void* unused) {
  for (int i = 0; i < 1000; ++i) {
    pthread_mutex_lock(&lock);
    ++counts[i % 4];
    pthread_mutex_unlock(&lock);
  }
  return unused;
}

int main(void) {
  counts = calloc(4, sizeof *counts);
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, Count, NULL);
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  printf("%d %d\n", counts[0], counts[3]);
  free(counts);
  return 3;
}
