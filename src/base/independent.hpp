// TESSERA_INDEPENDENT before a loop: an element may be written where the same one is read, but not where
// another one is, so that the compiler needs no overlap check of the arrays. (clang's equivalent warns about
// loops without a vector form, so it is not used: clang checks for overlap.)
#pragma once

#if defined(__clang__)
#define TESSERA_INDEPENDENT
#else
#define TESSERA_INDEPENDENT _Pragma("GCC ivdep")
#endif
