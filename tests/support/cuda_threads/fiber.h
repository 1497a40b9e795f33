/* fiber.h - several stacks in one thread of the system, and the switch between them.
 *
 * On x86-64 the switch is seven pushes and pops: no system call, and no floating-point state, which
 * the kernels do not change. Elsewhere it is swapcontext(), which also saves the signal mask, by a
 * system call.
 */
#ifndef STK_TEST_CUDA_THREADS_FIBER_H
#define STK_TEST_CUDA_THREADS_FIBER_H

#include <stddef.h>

#if !defined(__x86_64__) && !defined(CT_FIBER_UCONTEXT)
#define CT_FIBER_UCONTEXT 1
#endif
#ifdef CT_FIBER_UCONTEXT
#include <ucontext.h>
#endif

struct ct_fiber {
#ifdef CT_FIBER_UCONTEXT
    ucontext_t context;
#else
    void *stack_pointer; /* the saved registers lie there */
#endif
};

/* The next switch to it calls body() on that stack. body() must not return. */
void ct_fiber_start(struct ct_fiber *fiber, char *stack, size_t stack_bytes, void (*body)(void));

/* Saves the running fiber in *from and continues `to`. */
void ct_fiber_switch(struct ct_fiber *from, const struct ct_fiber *to);

#endif
