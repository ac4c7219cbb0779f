// Linked only with sanitizers: keeps MPI's plugins mapped, so that reports about them have names that can be
// suppressed.
extern "C" int dlclose(void*) { return 0; }
