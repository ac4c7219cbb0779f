// Prints the main thread's stack and ends the process if a test makes no progress.
#pragma once

namespace tessera::test {

// Call once, on the main thread. `rank` is the prefix of each line. After limit_s without a call of
// test_started() the stack is printed and the process exits with status 124.
void start_watchdog(int rank, double limit_s);
void test_started(const char* suite, const char* name);

}  // namespace tessera::test
