// The wheel's library for systems older than the one it is built on: three functions whose newest version came with glibc 2.35 and GCC 12
// are taken in the version that glibc 2.34 and GCC 11 (Red Hat 9 and its kin) have as well. Nothing outside the library sees these.
#if defined(__x86_64__) && defined(__GNUC__) && defined(__linux__)
#include <condition_variable>
#include <mutex>

extern "C" {
double tessera_hypot(double, double);
float tessera_hypotf(float, float);
void tessera_wait(std::condition_variable*, std::unique_lock<std::mutex>*);
__asm__(".symver tessera_hypot, hypot@GLIBC_2.2.5");
__asm__(".symver tessera_hypotf, hypotf@GLIBC_2.2.5");
__asm__(".symver tessera_wait, _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE@GLIBCXX_3.4.11");

__attribute__((visibility("hidden"))) double own_hypot(double a, double b) __asm__("hypot");
__attribute__((visibility("hidden"))) float own_hypotf(float a, float b) __asm__("hypotf");
__attribute__((visibility("hidden"))) void own_wait(
    std::condition_variable* condition,
    std::unique_lock<std::mutex>* lock) __asm__("_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE");

double own_hypot(double a, double b) { return tessera_hypot(a, b); }
float own_hypotf(float a, float b) { return tessera_hypotf(a, b); }
void own_wait(std::condition_variable* condition, std::unique_lock<std::mutex>* lock) {
  tessera_wait(condition, lock);
}
}
#endif
