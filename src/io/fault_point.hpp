// Points at which a test makes this rank fail: TESSERA_TEST_FAULT=renaming@2 kills rank 2 when it reaches the
// point "renaming"; renaming@2:throw raises an IoError there instead. No effect in a build without verifiers.
#pragma once
#include <string>

namespace tessera::io {

#ifdef TESSERA_VERIFY
void fault_point(const char* name);
bool is_faulty(const char* name);  // TESSERA_TEST_FAULT names this point and this rank
#else
inline void fault_point(const char*) {}
inline bool is_faulty(const char*) { return false; }
#endif

}  // namespace tessera::io
