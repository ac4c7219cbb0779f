// TESSERA_INDEPENDENT before a loop: an element may be written where the same one is read, never where
// another is, so that the loop needs no look at whether its arrays overlap. (clang has no such word but one
// that warns where a loop has no vector form; it looks.)
#pragma once

#if defined(__clang__)
#define TESSERA_INDEPENDENT
#else
#define TESSERA_INDEPENDENT _Pragma("GCC ivdep")
#endif
