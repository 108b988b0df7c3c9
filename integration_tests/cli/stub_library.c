/* Stands for librfinject.so where a test is about the command: loads anywhere and does nothing. */
int rfinject_stub_library_is_loaded(void) { return 1; }
