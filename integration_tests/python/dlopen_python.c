/* Opens a libpython by itself and runs a text in it, as programs with Python plug-ins do: dlopen_python LIBRARY TEXT
 */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  void (*initialize)(void) = (void (*)(void))dlsym(library, "Py_Initialize");
  int (*run)(const char*) = (int (*)(const char*))dlsym(library, "PyRun_SimpleString");
  int (*finalize)(void) = (int (*)(void))dlsym(library, "Py_FinalizeEx");
  if (initialize == NULL || run == NULL || finalize == NULL) return 2;
  initialize();
  const int failed = run(argv[2]);
  return finalize() != 0 || failed != 0;
}
