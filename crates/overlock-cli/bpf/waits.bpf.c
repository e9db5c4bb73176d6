/* Waits for futexes of one process, and the times that its threads had no CPU.
 *
 * Nothing runs when a lock is free: all is seen at context switches. A thread that leaves its CPU
 * within a futex call waits for a lock or an event; the thread that makes a futex call as it wakes
 * another has released the lock. The times without a CPU of all threads of the process tell, once
 * they are put together, what a holder did while others waited.
 */
#include "kernel.h"
#include "waits.h"

/* The kernel lets programs under this licence use all helpers. This file is under MIT too. */
const char LICENSE[] SECTION("license") = "Dual MIT/GPL";

/* Set before loading. */
const volatile s32 TARGET = 0;
const volatile s32 FUTEX = 202;

enum { FUTEX_WAKE_NEW = 454, FUTEX_WAIT_NEW = 455, FUTEX_REQUEUE_NEW = 456 };
enum { TASK_STOPPED = 4, TASK_TRACED = 8, TASK_DEAD = 0x80, TASK_FROZEN = 0x8000 };
/* A thread in these states is on its way to a CPU. */
enum { TASK_WAKING = 0x200, TASK_NEW = 0x800 };

/* A part of all sizes that pages have. */
#define PAGE 4096

/* A stack that was copied is copied again after this time, in case its record was lost. */
#define AGAIN_NS 1000000000ull
/* Copies of a CPU in a window of time. */
#define WINDOW_NS 100000000ull
#define COPIES_IN_WINDOW 2000

struct {
    NUMBER(type, MAP_RINGBUF);
    NUMBER(max_entries, 1 << 24);
} EVENTS SECTION(".maps");

/* Threads without a CPU. */
struct {
    NUMBER(type, MAP_LRU_HASH);
    NUMBER(max_entries, 16384);
    TYPE(key, u32);
    TYPE(value, struct wait);
} AWAY SECTION(".maps");

/* When a stack was copied last. */
struct {
    NUMBER(type, MAP_LRU_HASH);
    NUMBER(max_entries, 16384);
    TYPE(key, u64);
    TYPE(value, u64);
} COPIED SECTION(".maps");

struct scratch {
    u64 window_ns;
    u64 copies;
    struct stack stack;
};

struct {
    NUMBER(type, MAP_PERCPU_ARRAY);
    NUMBER(max_entries, 1);
    TYPE(key, u32);
    TYPE(value, struct scratch);
} SCRATCH SECTION(".maps");

/* Records that found no room: of times without a CPU, of waits, of stacks. */
struct {
    NUMBER(type, MAP_ARRAY);
    NUMBER(max_entries, 3);
    TYPE(key, u32);
    TYPE(value, u64);
} LOST SECTION(".maps");

struct registers {
    s32 syscall;
    u32 operation;
    u64 address;
    u64 ip, sp, bp, lr;
};

INLINE void lose(u32 which)
{
    u64 *count = map_look_up(&LOST, &which);
    if (count)
        __sync_fetch_and_add(count, 1);
}

/* CO-RE: the place of the field in this kernel. */
#define READ(from, field)                                                                          \
    ({                                                                                             \
        typeof((from)->field) value = 0;                                                           \
        read_kernel(&value, sizeof(value), __builtin_preserve_access_index(&(from)->field));       \
        value;                                                                                     \
    })
#define EXISTS(field) __builtin_preserve_field_info(field, 2)

INLINE void read_registers(struct task_struct *task, struct registers *to)
{
    void *from = task_registers(task);
    struct pt_regs___x86 *x86 = from;
    struct pt_regs___arm *arm = from;
    if (EXISTS(x86->orig_ax)) {
        to->syscall = (s32)READ(x86, orig_ax);
        to->address = READ(x86, di);
        to->operation = (u32)READ(x86, si);
        to->ip = READ(x86, ip);
        to->sp = READ(x86, sp);
        to->bp = READ(x86, bp);
        to->lr = 0;
    } else {
        to->syscall = READ(arm, syscallno);
        /* Its register is that of the result too. */
        to->address = READ(arm, orig_x0);
        to->operation = (u32)READ(arm, regs[1]);
        to->ip = READ(arm, pc);
        to->sp = READ(arm, sp);
        to->bp = READ(arm, regs[29]);
        to->lr = READ(arm, regs[30]);
    }
}

/* FUTEX_WAIT, LOCK_PI, WAIT_BITSET, WAIT_REQUEUE_PI, LOCK_PI2. */
#define WAITS ((1 << 0) | (1 << 6) | (1 << 9) | (1 << 11) | (1 << 13))

INLINE int is_wait(const struct registers *registers)
{
    if (registers->syscall == FUTEX)
        return WAITS >> (registers->operation & 15) & 1;
    return registers->syscall == FUTEX_WAIT_NEW;
}

INLINE int is_wake(const struct registers *registers)
{
    if (registers->syscall == FUTEX)
        return !(WAITS >> (registers->operation & 15) & 1);
    return registers->syscall == FUTEX_WAKE_NEW || registers->syscall == FUTEX_REQUEUE_NEW;
}

/* Copies a piece of a stack, or as much of it as there is before the stack's end, which is that of
 * a page. Returns the length. */
INLINE u32 read_piece(u8 *to, u64 from)
{
    if (!read_user(to, STACK_PIECE, (void *)from))
        return STACK_PIECE;
    u32 rest = PAGE - (from & (PAGE - 1));
    if (rest >= STACK_PIECE || read_user(to, rest & (STACK_PIECE - 1), (void *)from))
        return 0;
    return rest;
}

/* The key of the current thread's stack, which is copied unless it was. */
INLINE u64 copy_stack(u32 tid, u64 address, const struct registers *registers, u64 now)
{
    u32 zero = 0;
    struct scratch *scratch = map_look_up(&SCRATCH, &zero);
    if (!scratch)
        return 0;
    struct stack *stack = &scratch->stack;
    /* What could not be read is zero. */
    u32 last = read_piece(stack->bytes, registers->sp);
    if (!last) {
        lose(2);
        return 0;
    }
    /* The calls that led here leave their return addresses at the top of the stack. Small numbers
     * beside them, such as counters of loops, differ from call to call. */
    u64 key = tid ^ registers->ip * 3 ^ registers->sp * 5 ^ address * 7;
    u64 *words = (u64 *)stack->bytes;
#pragma unroll
    for (int at = 0; at < 32; at++) {
        u64 word = words[at];
        if (word >= 1 << 16)
            key = (key ^ word ^ key >> 29) * 0x9e3779b97f4a7c15ull;
    }
    key |= 1;
    u64 *copied = map_look_up(&COPIED, &key);
    if (copied && now - *copied < AGAIN_NS)
        return key;
    if (now - scratch->window_ns > WINDOW_NS) {
        scratch->window_ns = now;
        scratch->copies = 0;
    }
    if (scratch->copies++ > COPIES_IN_WINDOW) {
        lose(2);
        return key;
    }
    u64 length = last;
    for (u32 piece = 1; piece < STACK_PIECES && last == STACK_PIECE; piece++) {
        u32 at = piece * STACK_PIECE;
        last = read_piece(stack->bytes + at, registers->sp + at);
        length = at + last;
    }
    stack->record = RECORD_STACK;
    stack->tid = tid;
    stack->key = key;
    stack->ip = registers->ip;
    stack->sp = registers->sp;
    stack->bp = registers->bp;
    stack->lr = registers->lr;
    stack->length = length;
    u64 size = __builtin_offsetof(struct stack, bytes) + length;
    if (size > sizeof(*stack))
        return 0;
    if (ringbuf_output(&EVENTS, stack, size, RINGBUF_NO_WAKEUP))
        lose(2);
    else
        map_update(&COPIED, &key, &now, 0);
    return key;
}

/* What a thread does without a CPU, as far as its state and its registers tell. */
INLINE struct wait away(u32 tid, u32 state, int is_preempted, const struct registers *registers,
                        u64 now)
{
    struct wait wait = {};
    wait.off.tid = tid;
    wait.off.out_ns = now;
    wait.off.syscall = registers->syscall;
    if (is_preempted || !state)
        wait.off.leave = LEAVE_PREEMPTED;
    else if (state & (TASK_STOPPED | TASK_TRACED | TASK_FROZEN))
        wait.off.leave = LEAVE_STOPPED;
    else
        wait.off.leave = LEAVE_BLOCKED;
    wait.off.record = RECORD_OFF;
    if (wait.off.leave == LEAVE_BLOCKED && is_wait(registers)) {
        wait.off.record = RECORD_WAIT;
        wait.address = registers->address;
        wait.operation = registers->operation;
    }
    return wait;
}

INLINE void leaves(struct task_struct *task, int is_preempted, u64 now)
{
    u32 state = task->__state;
    if (state & TASK_DEAD)
        return;
    u32 tid = task->pid;
    struct registers registers = {};
    read_registers(task, &registers);
    struct wait wait = away(tid, state, is_preempted, &registers, now);
    if (wait.off.record == RECORD_WAIT) {
        u64 from = registers.address - WORDS_BEFORE * sizeof(u32);
        if (read_user(wait.words, sizeof(wait.words), (void *)from))
            /* The page may begin with the futex. */
            read_user(wait.words + WORDS_BEFORE, sizeof(u32), (void *)registers.address);
        wait.key = copy_stack(tid, registers.address, &registers, now);
    }
    map_update(&AWAY, &tid, &wait, 0);
}

INLINE void enters(struct task_struct *task, u64 now)
{
    u32 tid = task->pid;
    struct wait *wait = map_look_up(&AWAY, &tid);
    if (!wait)
        return;
    wait->off.in_ns = now;
    int is_wait = wait->off.record == RECORD_WAIT;
    u64 size = is_wait ? sizeof(struct wait) : sizeof(struct off);
    if (ringbuf_output(&EVENTS, wait, size, RINGBUF_NO_WAKEUP))
        lose(is_wait);
    map_delete(&AWAY, &tid);
}

SECTION("tp_btf/sched_switch")
int switches(u64 *arguments)
{
    struct task_struct *previous = (void *)arguments[1];
    struct task_struct *next = (void *)arguments[2];
    int was_ours = previous->tgid == TARGET;
    int is_ours = next->tgid == TARGET;
    if (!was_ours && !is_ours)
        return 0;
    u64 now = now_ns();
    if (was_ours)
        leaves(previous, arguments[0] & 1, now);
    if (is_ours)
        enters(next, now);
    return 0;
}

SECTION("tp_btf/sched_waking")
int wakes(u64 *arguments)
{
    struct task_struct *task = (void *)arguments[0];
    if (task->tgid != TARGET)
        return 0;
    u32 tid = task->pid;
    struct wait *wait = map_look_up(&AWAY, &tid);
    if (!wait || wait->off.wake_ns || wait->off.leave == LEAVE_PREEMPTED)
        return 0;
    u64 now = now_ns();
    wait->off.wake_ns = now;
    if (wait->off.record != RECORD_WAIT)
        return 0;
    struct task_struct *waker = current_task();
    struct registers registers = {};
    read_registers(waker, &registers);
    /* Else it is an interrupt, of which this thread knows nothing. */
    if (!is_wake(&registers))
        return 0;
    wait->waker = waker->pid;
    if (waker->tgid == TARGET)
        wait->waker_key = copy_stack(waker->pid, registers.address, &registers, now);
    return 0;
}

/* The threads that have no CPU as the look begins. Their memory cannot be read from here. The
 * reader of the records can, so in place of its words a wait has its registers. */
SECTION("iter/task")
int begins(u64 *arguments)
{
    struct task_struct *task = (void *)arguments[1];
    if (!task || task->tgid != TARGET)
        return 0;
    u32 state = task->__state;
    int has_cpu = EXISTS(task->on_cpu) ? task->on_cpu : 0;
    if (has_cpu || state & (TASK_DEAD | TASK_WAKING | TASK_NEW))
        return 0;
    u32 tid = task->pid;
    struct registers registers = {};
    read_registers(task, &registers);
    struct wait wait = away(tid, state, 0, &registers, now_ns());
    if (wait.off.record == RECORD_WAIT) {
        wait.key = KEY_BEFORE(tid);
        wait.registers[0] = registers.ip;
        wait.registers[1] = registers.sp;
        wait.registers[2] = registers.bp;
        wait.registers[3] = registers.lr;
    }
    if (map_update(&AWAY, &tid, &wait, NO_EXIST))
        return 0;
    /* It may have got a CPU before the entry was there. An entry that is there since then is of a
     * later time. */
    has_cpu = EXISTS(task->on_cpu) ? task->on_cpu : 0;
    if (has_cpu || task->__state != state) {
        struct wait *entry = map_look_up(&AWAY, &tid);
        if (entry && entry->off.out_ns == wait.off.out_ns)
            map_delete(&AWAY, &tid);
        return 0;
    }
    return 0;
}
