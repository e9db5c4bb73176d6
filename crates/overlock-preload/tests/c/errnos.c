/* The result of every function for every kind of object in every state: each in a process of its
 * own, which may wait for ever. The only exceptions are objects that were never initialised: POSIX
 * leaves them undefined, and programs cannot survive them. */
#include "check.h"

#include <sys/time.h>

typedef struct {
    union {
        pthread_mutex_t mutex;
        pthread_rwlock_t rwlock;
        pthread_spinlock_t spin;
        sem_t sem;
    };
    pthread_cond_t cond;
} object;

typedef struct {
    const char *name;
    int (*call)(object *);
} entry;

#define IT(name, expression)                                                               \
    static int name(object *it)                                                            \
    {                                                                                      \
        return expression;                                                                 \
    }
#define NO_MOMENT {1, 1000000000}
static struct timespec past, no_moment = NO_MOMENT, before = {-1, 0};
static struct {
    atomic_int begun, ends, answer;
} *seen;

/* A wait until then ends, though a machine that stops may leave it asleep for longer. */
static struct timespec soon(clockid_t clock)
{
    seen->ends = 1;
    return in_ms(clock, 5);
}
#define AT(clock) (struct timespec[]){soon(clock)}
/* For states that not all kinds have. */
#define OR_END(call)                                                                       \
    do {                                                                                   \
        if ((call) != 0)                                                                   \
            _exit(1);                                                                      \
    } while (0)
static int by_errno(int answer) { return answer == 0 ? 0 : errno; }

/* In another thread, which exits with the process only. */
struct errand {
    int (*call)(object *);
    object *it;
    atomic_int done;
};

static void *run_errand(void *with)
{
    struct errand *errand = with;
    OR_END(errand->call(errand->it));
    errand->done = 1;
    for (;;)
        pause();
}

static void by_other(object *it, int (*call)(object *))
{
    static struct errand errand;
    errand = (struct errand){call, it, 0};
    start(run_errand, &errand);
    while (!errand.done)
        sleep_ms(1);
}

/* Mutexes. */
IT(mutex_lock, pthread_mutex_lock(&it->mutex))
IT(mutex_trylock, pthread_mutex_trylock(&it->mutex))
IT(mutex_unlock, pthread_mutex_unlock(&it->mutex))
IT(mutex_destroy, pthread_mutex_destroy(&it->mutex))
IT(mutex_timed, pthread_mutex_timedlock(&it->mutex, AT(CLOCK_REALTIME)))
IT(mutex_past, pthread_mutex_timedlock(&it->mutex, &past))
IT(mutex_before, pthread_mutex_timedlock(&it->mutex, &before))
IT(mutex_no_moment, pthread_mutex_timedlock(&it->mutex, &no_moment))
IT(mutex_clock, pthread_mutex_clocklock(&it->mutex, CLOCK_MONOTONIC, AT(CLOCK_MONOTONIC)))
IT(mutex_no_clock, pthread_mutex_clocklock(&it->mutex, CLOCK_THREAD_CPUTIME_ID, &past))
IT(mutex_consistent, pthread_mutex_consistent(&it->mutex))
IT(mutex_cond_timed, (pthread_cond_init(&it->cond, NULL), pthread_cond_timedwait(&it->cond, &it->mutex, AT(CLOCK_REALTIME))))
IT(mutex_cond_no_moment, (pthread_cond_init(&it->cond, NULL), pthread_cond_timedwait(&it->cond, &it->mutex, &no_moment)))
IT(mutex_cond_no_clock, (pthread_cond_init(&it->cond, NULL), pthread_cond_clockwait(&it->cond, &it->mutex, CLOCK_THREAD_CPUTIME_ID, &past)))
static int mutex_ceiling(object *it) { int ceiling; return pthread_mutex_getprioceiling(&it->mutex, &ceiling); }
static const entry of_mutexes[] = {
    {"lock", mutex_lock}, {"trylock", mutex_trylock}, {"unlock", mutex_unlock}, {"destroy", mutex_destroy}, {"timedlock", mutex_timed},
    {"timedlock past", mutex_past}, {"timedlock before 1970", mutex_before}, {"timedlock no moment", mutex_no_moment}, {"clocklock", mutex_clock},
    {"clocklock no clock", mutex_no_clock}, {"consistent", mutex_consistent}, {"cond_timedwait", mutex_cond_timed},
    {"cond_timedwait no moment", mutex_cond_no_moment}, {"cond_clockwait no clock", mutex_cond_no_clock}, {"getprioceiling", mutex_ceiling}, {NULL, NULL},
};

static int with_attr(object *it, int kind, int shared, int robust, int protocol)
{
    pthread_mutexattr_t attr;
    OK(pthread_mutexattr_init(&attr));
    OK(pthread_mutexattr_settype(&attr, kind));
    OK(pthread_mutexattr_setpshared(&attr, shared));
    OK(pthread_mutexattr_setrobust(&attr, robust));
    OK(pthread_mutexattr_setprotocol(&attr, protocol));
    return pthread_mutex_init(&it->mutex, &attr);
}
IT(make_normal, with_attr(it, PTHREAD_MUTEX_NORMAL, 0, 0, 0))
IT(make_recursive, with_attr(it, PTHREAD_MUTEX_RECURSIVE, 0, 0, 0))
IT(make_errorcheck, with_attr(it, PTHREAD_MUTEX_ERRORCHECK, 0, 0, 0))
IT(make_adaptive, with_attr(it, PTHREAD_MUTEX_ADAPTIVE_NP, 0, 0, 0))
IT(make_shared, with_attr(it, PTHREAD_MUTEX_ERRORCHECK, 1, 0, 0))
IT(make_robust, with_attr(it, PTHREAD_MUTEX_ERRORCHECK, 0, 1, 0))
IT(make_inherit, with_attr(it, PTHREAD_MUTEX_RECURSIVE, 0, 0, PTHREAD_PRIO_INHERIT))
IT(make_protect, with_attr(it, PTHREAD_MUTEX_ERRORCHECK, 0, 0, PTHREAD_PRIO_PROTECT))
static const entry mutexes[] = {
    {"normal", make_normal}, {"recursive", make_recursive}, {"errorcheck", make_errorcheck}, {"adaptive", make_adaptive}, {"shared", make_shared},
    {"robust", make_robust}, {"inherit", make_inherit}, {"protect", make_protect}, {NULL, NULL},
};
IT(nothing, it == NULL)
static int mutex_twice(object *it) { OR_END(mutex_lock(it)); mutex_trylock(it); return 0; }
static int mutex_others(object *it) { by_other(it, mutex_lock); return 0; }
static int mutex_free_again(object *it) { OR_END(mutex_lock(it)); return mutex_unlock(it); }
static const entry mutex_states[] = {
    {"new", nothing}, {"held", mutex_lock}, {"held, tried again", mutex_twice}, {"held by another", mutex_others},
    {"free again", mutex_free_again}, {"destroyed", mutex_destroy}, {NULL, NULL},
};

/* Reader-writer locks. */
IT(rw_read, pthread_rwlock_rdlock(&it->rwlock))
IT(rw_tryread, pthread_rwlock_tryrdlock(&it->rwlock))
IT(rw_write, pthread_rwlock_wrlock(&it->rwlock))
IT(rw_trywrite, pthread_rwlock_trywrlock(&it->rwlock))
IT(rw_unlock, pthread_rwlock_unlock(&it->rwlock))
IT(rw_destroy, pthread_rwlock_destroy(&it->rwlock))
IT(rw_read_timed, pthread_rwlock_timedrdlock(&it->rwlock, AT(CLOCK_REALTIME)))
IT(rw_write_timed, pthread_rwlock_timedwrlock(&it->rwlock, AT(CLOCK_REALTIME)))
IT(rw_read_past, pthread_rwlock_timedrdlock(&it->rwlock, &past))
IT(rw_write_past, pthread_rwlock_timedwrlock(&it->rwlock, &before))
IT(rw_read_no_moment, pthread_rwlock_timedrdlock(&it->rwlock, &no_moment))
IT(rw_write_no_moment, pthread_rwlock_timedwrlock(&it->rwlock, &no_moment))
IT(rw_read_clock, pthread_rwlock_clockrdlock(&it->rwlock, CLOCK_MONOTONIC, AT(CLOCK_MONOTONIC)))
IT(rw_write_clock, pthread_rwlock_clockwrlock(&it->rwlock, CLOCK_MONOTONIC, AT(CLOCK_MONOTONIC)))
IT(rw_read_no_clock, pthread_rwlock_clockrdlock(&it->rwlock, CLOCK_THREAD_CPUTIME_ID, &past))
IT(rw_write_no_clock, pthread_rwlock_clockwrlock(&it->rwlock, CLOCK_THREAD_CPUTIME_ID, &past))
static const entry of_rwlocks[] = {
    {"rdlock", rw_read}, {"tryrdlock", rw_tryread}, {"wrlock", rw_write}, {"trywrlock", rw_trywrite}, {"unlock", rw_unlock}, {"destroy", rw_destroy},
    {"timedrdlock", rw_read_timed}, {"timedwrlock", rw_write_timed}, {"timedrdlock past", rw_read_past}, {"timedwrlock before 1970", rw_write_past},
    {"timedrdlock no moment", rw_read_no_moment}, {"timedwrlock no moment", rw_write_no_moment}, {"clockrdlock", rw_read_clock},
    {"clockwrlock", rw_write_clock}, {"clockrdlock no clock", rw_read_no_clock}, {"clockwrlock no clock", rw_write_no_clock}, {NULL, NULL},
};
static int rw_with(object *it, int prefers, int shared)
{
    pthread_rwlockattr_t attr;
    OK(pthread_rwlockattr_init(&attr));
    OK(pthread_rwlockattr_setkind_np(&attr, prefers));
    OK(pthread_rwlockattr_setpshared(&attr, shared));
    return pthread_rwlock_init(&it->rwlock, &attr);
}
IT(make_readers, rw_with(it, PTHREAD_RWLOCK_PREFER_READER_NP, 0))
IT(make_writers, rw_with(it, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP, 0))
IT(make_rw_shared, rw_with(it, PTHREAD_RWLOCK_PREFER_READER_NP, 1))
static const entry rwlocks[] = {
    {"for readers", make_readers}, {"for writers", make_writers}, {"shared", make_rw_shared}, {NULL, NULL},
};
static int rw_others_read(object *it) { by_other(it, rw_read); return 0; }
static int rw_others_write(object *it) { by_other(it, rw_write); return 0; }
static int rw_twice(object *it) { OK(rw_read(it)); return rw_read(it); }
static const entry rw_states[] = {
    {"new", nothing}, {"read", rw_read}, {"read twice", rw_twice}, {"written", rw_write}, {"read by another", rw_others_read},
    {"written by another", rw_others_write}, {NULL, NULL},
};

/* Spinlocks. */
IT(spin_lock, pthread_spin_lock(&it->spin))
IT(spin_trylock, pthread_spin_trylock(&it->spin))
IT(spin_unlock, pthread_spin_unlock(&it->spin))
IT(spin_destroy, pthread_spin_destroy(&it->spin))
static const entry of_spins[] = {{"lock", spin_lock}, {"trylock", spin_trylock}, {"unlock", spin_unlock}, {"destroy", spin_destroy}, {NULL, NULL}};
IT(make_spin, pthread_spin_init(&it->spin, 0))
IT(make_spin_shared, pthread_spin_init(&it->spin, 1))
static const entry spins[] = {{"private", make_spin}, {"shared", make_spin_shared}, {NULL, NULL}};
static int spin_others(object *it) { by_other(it, spin_lock); return 0; }
static const entry spin_states[] = {{"new", nothing}, {"held", spin_lock}, {"held by another", spin_others}, {NULL, NULL}};

/* Semaphores. */
IT(sem_wait_it, by_errno(sem_wait(&it->sem)))
IT(sem_try, by_errno(sem_trywait(&it->sem)))
IT(sem_post_it, by_errno(sem_post(&it->sem)))
IT(sem_destroy_it, by_errno(sem_destroy(&it->sem)))
IT(sem_timed, by_errno(sem_timedwait(&it->sem, AT(CLOCK_REALTIME))))
IT(sem_past, by_errno(sem_timedwait(&it->sem, &past)))
IT(sem_before, by_errno(sem_timedwait(&it->sem, &before)))
IT(sem_no_moment, by_errno(sem_timedwait(&it->sem, &no_moment)))
IT(sem_clock, by_errno(sem_clockwait(&it->sem, CLOCK_MONOTONIC, AT(CLOCK_MONOTONIC))))
IT(sem_no_clock, by_errno(sem_clockwait(&it->sem, CLOCK_THREAD_CPUTIME_ID, &past)))
IT(sem_too_much, by_errno(sem_init(&it->sem, 0, (unsigned)SEM_VALUE_MAX + 1)))
IT(sem_close_it, by_errno(sem_close(&it->sem)))
static const entry of_sems[] = {
    {"wait", sem_wait_it}, {"trywait", sem_try}, {"post", sem_post_it}, {"destroy", sem_destroy_it}, {"timedwait", sem_timed}, {"timedwait past", sem_past},
    {"timedwait before 1970", sem_before}, {"timedwait no moment", sem_no_moment}, {"clockwait", sem_clock}, {"clockwait no clock", sem_no_clock},
    {"init too much", sem_too_much}, {"close", sem_close_it}, {NULL, NULL},
};
IT(make_sem, sem_init(&it->sem, 0, 0))
IT(make_sem_shared, sem_init(&it->sem, 1, 0))
static const entry sems[] = {{"private", make_sem}, {"shared", make_sem_shared}, {NULL, NULL}};
static int sem_full(object *it) { return sem_init(&it->sem, 0, SEM_VALUE_MAX); }
static const entry sem_states[] = {{"empty", nothing}, {"1", sem_post_it}, {"full", sem_full}, {NULL, NULL}};

static char state_of(pid_t process)
{
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", process);
    FILE *stat = fopen(path, "r");
    CHECK(stat != NULL && fscanf(stat, "%*d (%*[^)]) %c", &state) == 1);
    fclose(stat);
    return state;
}

/* Runs one combination in a child. Returns -1 if it waits, asleep or polling. */
static int answer_of(int (*make)(object *), int (*state)(object *), int (*call)(object *))
{
    seen->begun = seen->ends = 0;
    seen->answer = -1;
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        static object it;
        if (make(&it) != 0 || state(&it) != 0)
            _exit(1);
        struct itimerval end = {{0, 0}, {0, 500000}};
        signal(SIGPROF, SIG_DFL);
        setitimer(ITIMER_PROF, &end, NULL);
        seen->begun = 1;
        seen->answer = call(&it);
        _exit(0);
    }
    int status, asleep = 0;
    pid_t ended;
    while ((ended = waitpid(child, &status, WNOHANG)) == 0) {
        /* On a busy machine a thread may not run, but then it is not asleep. */
        asleep = seen->begun && !seen->ends && state_of(child) == 'S' ? asleep + 1 : 0;
        if (asleep == 25)
            CHECK(kill(child, SIGKILL) == 0);
        sleep_ms(1);
    }
    CHECK(ended == child);
    return seen->answer;
}

static void all(const char *what, const entry *kinds, const entry *states, const entry *calls)
{
    for (const entry *kind = kinds; kind->name != NULL; kind++) {
        for (const entry *state = states; state->name != NULL; state++) {
            for (const entry *call = calls; call->name != NULL; call++) {
                int answer = answer_of(kind->call, state->call, call->call);
                printf("%s, %s, %s: %s: %s\n", what, kind->name, state->name, call->name, answer < 0 ? "waits" : name_of(answer));
            }
        }
    }
}

int main(void)
{
    seen = shared_memory(sizeof *seen);
    setvbuf(stdout, NULL, _IOFBF, 1 << 20);
    all("mutex", mutexes, mutex_states, of_mutexes);
    all("rwlock", rwlocks, rw_states, of_rwlocks);
    all("spin", spins, spin_states, of_spins);
    all("sem", sems, sem_states, of_sems);
    return 0;
}
