/* Built with AddressSanitizer; says what it was told of the sanitizer's options. */
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  const char* options = getenv("ASAN_OPTIONS");
  printf("%s\n", options != NULL ? options : "(none)");
  return 3;
}
