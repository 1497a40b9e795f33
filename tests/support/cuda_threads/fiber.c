/* fiber.c - see fiber.h. */
#include "fiber.h"

#include <stdint.h>

#ifdef CT_FIBER_UCONTEXT

void ct_fiber_start(struct ct_fiber *fiber, char *stack, size_t stack_bytes, void (*body)(void))
{
    (void)getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = stack;
    fiber->context.uc_stack.ss_size = stack_bytes;
    fiber->context.uc_link = NULL;
    makecontext(&fiber->context, body, 0);
}

void ct_fiber_switch(struct ct_fiber *from, const struct ct_fiber *to)
{
    (void)swapcontext(&from->context, &to->context);
}

#else

/* ct_fiber_swap(void **from, void *to): saves what a called function must keep, and takes the
 * other's. */
void ct_fiber_swap(void **from, void *to);
__asm__(".text\n"
        ".globl ct_fiber_swap\n"
        ".hidden ct_fiber_swap\n"
        ".type ct_fiber_swap, @function\n"
        "ct_fiber_swap:\n"
        "push %rbp\n"
        "push %rbx\n"
        "push %r12\n"
        "push %r13\n"
        "push %r14\n"
        "push %r15\n"
        "mov %rsp, (%rdi)\n"
        "mov %rsi, %rsp\n"
        "pop %r15\n"
        "pop %r14\n"
        "pop %r13\n"
        "pop %r12\n"
        "pop %rbx\n"
        "pop %rbp\n"
        "ret\n"
        ".size ct_fiber_swap, . - ct_fiber_swap\n");

/* The stack of a fiber that has not run: six registers, the address that the switch returns to, and
 * the return address of body(), which is never used. At its first instruction the stack is then 8
 * bytes off a multiple of 16, as the ABI wants it. */
void ct_fiber_start(struct ct_fiber *fiber, char *stack, size_t stack_bytes, void (*body)(void))
{
    enum { REGISTERS = 6 };
    void **top = (void **)(void *)(stack + stack_bytes);
    *--top = NULL;
    *--top = (void *)(uintptr_t)body;
    for (int i = 0; i < REGISTERS; i++)
        *--top = NULL;
    fiber->stack_pointer = top;
}

void ct_fiber_switch(struct ct_fiber *from, const struct ct_fiber *to)
{
    ct_fiber_swap(&from->stack_pointer, to->stack_pointer);
}

#endif
