// Inlining that does not depend on the compiler's estimate: a kernel is one large function whose arrays live in
// registers, and compilers stop inlining long before it is complete.
#pragma once

// LCP_INLINE begins a function's declaration, LCP_INLINE_LAMBDA ends a lambda's. LCP_NOINLINE begins the declaration of
// a function that stays one piece of code: neither inlined nor, by GCC, cloned for constant arguments.
//
// For CUDA's compiler these macros make functions of the GPU; a lambda belongs to the function that it stands in. There
// everything is inlined, since an array whose address crosses a call does not live in registers.
#if defined __CUDACC__
#define LCP_INLINE __device__ __attribute__((always_inline))
#define LCP_INLINE_LAMBDA
#define LCP_NOINLINE __device__ __attribute__((always_inline)) inline
#else
#define LCP_INLINE __attribute__((always_inline))
#define LCP_INLINE_LAMBDA __attribute__((always_inline))
#ifdef __clang__
#define LCP_NOINLINE [[gnu::noinline]]
#else
#define LCP_NOINLINE [[gnu::noinline, gnu::noclone]]
#endif
#endif
