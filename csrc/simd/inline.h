// Inlining that does not depend on the compiler's estimate: a kernel is one large function whose arrays live in
// registers, and compilers stop inlining long before it is complete.
#pragma once

#define LCP_INLINE __attribute__((always_inline))

// A function that stays one piece of code: neither inlined nor, by GCC, cloned for constant arguments.
#ifdef __clang__
#define LCP_NOINLINE [[gnu::noinline]]
#else
#define LCP_NOINLINE [[gnu::noinline, gnu::noclone]]
#endif
