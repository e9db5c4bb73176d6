/* The records that the programs write; src/profile/attach/records.rs reads them. */
#pragma once

enum record { RECORD_STACK = 1, RECORD_OFF = 2, RECORD_WAIT = 3 };

/* Why a thread left its CPU. */
enum leave { LEAVE_PREEMPTED = 0, LEAVE_BLOCKED = 1, LEAVE_STOPPED = 2 };

/* The bytes that are copied from a stack at most, in pieces of this size. */
enum { STACK_PIECE = 512, STACK_PIECES = 32 };

/* Words at a futex: from 16 bytes before it on, since locks have their owner near. */
enum { WORDS_BEFORE = 4, WORDS = 12 };

/* A stack and its registers. */
struct stack {
    u32 record;
    u32 tid;
    u64 key;
    u64 ip;
    u64 sp;
    u64 bp;
    u64 lr;
    u64 length;
    u8 bytes[STACK_PIECE * STACK_PIECES];
};

/* The time that a thread had no CPU. */
struct off {
    u32 record;
    u32 tid;
    u64 out_ns;
    /* When it was woken; 0 if it could run all the time. */
    u64 wake_ns;
    /* When it got a CPU; 0 if it has none yet. */
    u64 in_ns;
    /* Its system call; negative outside of one. */
    s32 syscall;
    u32 leave;
};

/* The same of one in a wait for a futex. */
struct wait {
    struct off off;
    u64 address;
    /* The stack, and that of the thread that woke it; 0 if unknown. */
    u64 key;
    u64 waker_key;
    /* The thread that woke it, if by a futex call; else 0: a time-out or a signal. */
    u32 waker;
    u32 operation;
    union {
        u32 words[WORDS];
        u64 registers[WORDS / 2];
    };
};

/* The key of a wait that began before the look. */
#define KEY_BEFORE(tid) ((u64)(tid) << 32 | 1)
