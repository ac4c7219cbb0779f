// A test program that stops moving prints where its main thread stands and ends.
#pragma once

namespace tessera::test {

// Call on the main thread, once. `rank` goes before each line. After limit_s without a call of
// test_started() the stack is printed and the process exits with status 124.
void start_watchdog(int rank, double limit_s);
void test_started(const char* suite, const char* name);

}  // namespace tessera::test
