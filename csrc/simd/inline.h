// Inlining that does not depend on the compiler's estimate: a kernel is one straight line of code that lives in
// registers, and compilers give up inlining long before that.
#pragma once

#define LCP_INLINE __attribute__((always_inline))
