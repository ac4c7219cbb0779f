// Places where a test makes this rank fail: TESSERA_TEST_FAULT=renaming@2 kills rank 2 when it comes to the
// point "renaming"; renaming@2:throw raises an IoError there instead. Nothing in a build without verifiers.
#pragma once
#include <string>

namespace tessera::io {

#ifdef TESSERA_VERIFY
void fault_point(const char* name);
bool is_faulty(const char* name);  // the point is the one that is asked for, and the rank this one
#else
inline void fault_point(const char*) {}
inline bool is_faulty(const char*) { return false; }
#endif

}  // namespace tessera::io
