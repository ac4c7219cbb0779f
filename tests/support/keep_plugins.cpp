// Linked under the sanitizers only: MPI's plugins stay mapped, so that reports about them have names that
// can be suppressed.
extern "C" int dlclose(void*) { return 0; }
