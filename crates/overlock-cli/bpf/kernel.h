/* What the programs need of the kernel: fields by name, whose places the loader finds in the
 * running kernel's BTF, and helpers by number. Written by hand, so that no kernel header is needed.
 */
#pragma once

typedef unsigned char u8;
typedef int s32;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SECTION(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct task_struct {
    s32 pid;
    s32 tgid;
    u32 __state;
    s32 on_cpu;
};

/* The registers of a thread in user space, as each architecture saves them. */
struct pt_regs___x86 {
    unsigned long r10, dx, si, di, orig_ax, ip, sp, bp;
} __attribute__((preserve_access_index));

struct pt_regs___arm {
    u64 regs[31];
    u64 sp;
    u64 pc;
    u64 orig_x0;
    s32 syscallno;
} __attribute__((preserve_access_index));

#pragma clang attribute pop

/* Maps are described by the types of these fields. */
#define NUMBER(name, value) int(*name)[value]
#define TYPE(name, type) typeof(type) *name

enum map_type { MAP_ARRAY = 2, MAP_PERCPU_ARRAY = 6, MAP_LRU_HASH = 9, MAP_RINGBUF = 27 };
enum { RINGBUF_NO_WAKEUP = 1 };
enum { NO_EXIST = 1 };

static void *(*map_look_up)(void *map, const void *key) = (void *)1;
static long (*map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*map_delete)(void *map, const void *key) = (void *)3;
static u64 (*now_ns)(void) = (void *)5;
static long (*read_user)(void *to, u32 size, const void *from) = (void *)112;
static long (*read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static long (*ringbuf_output)(void *map, void *data, u64 size, u64 flags) = (void *)130;
static struct task_struct *(*current_task)(void) = (void *)158;
static void *(*task_registers)(struct task_struct *task) = (void *)175;
