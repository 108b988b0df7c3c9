// Takes a piece of the static TLS that glibc keeps for libraries that are opened at run time. The test opens copies
// of it.
__attribute__((tls_model("initial-exec"))) _Thread_local char rfinject_test_hog[128];
char* rfinject_test_touch(void) { return rfinject_test_hog; }
