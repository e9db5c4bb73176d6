// Sound programs whose locks look as if they had two orders, and beside each an unsound one that
// differs little. The argument names the scene.

#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef pthread_mutex_t Lock;

static Lock g = PTHREAD_MUTEX_INITIALIZER, h = PTHREAD_MUTEX_INITIALIZER;
static Lock a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static Lock c = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;

// Takes the locks up to a null, and releases them.
static void take(Lock *const *locks) {
    int count = 0;
    while (locks[count])
        pthread_mutex_lock(locks[count++]);
    while (count-- > 0)
        pthread_mutex_unlock(locks[count]);
}

#define TAKE(...) take((Lock *const[]){__VA_ARGS__, NULL})

static void *takes(void *locks) {
    take(locks);
    return NULL;
}

// The same on another thread, to its end.
#define ELSEWHERE(...)                                                                             \
    do {                                                                                           \
        pthread_t thread;                                                                          \
        pthread_create(&thread, NULL, takes, (Lock *[]){__VA_ARGS__, NULL});                       \
        pthread_join(thread, NULL);                                                                \
    } while (0)

static void gate(void) {
    TAKE(&g, &a, &b);
    ELSEWHERE(&g, &b, &a);
}

static void gate_of_three(void) {
    TAKE(&g, &a, &b);
    TAKE(&b, &c);
    ELSEWHERE(&g, &c, &a);
}

static void a_gate_each(void) {
    TAKE(&g, &a, &b);
    TAKE(&h, &a, &b);
    ELSEWHERE(&g, &h, &b, &a);
}

static void gate_gone(void) {
    Lock gates[2];
    pthread_mutex_init(&gates[0], NULL);
    TAKE(&gates[0], &a, &b);
    pthread_mutex_destroy(&gates[0]);
    pthread_mutex_init(&gates[1], NULL);
    ELSEWHERE(&gates[1], &b, &a);
    pthread_mutex_destroy(&gates[1]);
}

static void two_gates(void) {
    TAKE(&g, &a, &b);
    ELSEWHERE(&h, &b, &a);
}

static void gate_once(void) {
    gate();
    ELSEWHERE(&b, &a);
}

static void *reads_and_takes(void *unused) {
    pthread_rwlock_rdlock(&shared);
    TAKE(&b, &a);
    pthread_rwlock_unlock(&shared);
    return unused;
}

// A gate that readers share keeps nobody out.
static void gate_shared(void) {
    pthread_rwlock_rdlock(&shared);
    TAKE(&a, &b);
    pthread_rwlock_unlock(&shared);
    pthread_t thread;
    pthread_create(&thread, NULL, reads_and_takes, NULL);
    pthread_join(thread, NULL);
}

static int handled;

static void lock_in_handler(int signal) {
    (void)signal;
    TAKE(&a);
    handled++;
}

static void with_handler(int signal, void (*send)(int signal)) {
    sigaction(signal, &(struct sigaction){.sa_handler = lock_in_handler}, NULL);
    TAKE(&a);
    send(signal);
    while (!handled)
        usleep(1000);
    TAKE(&a);
}

static void fault(int signal) {
    (void)signal;
    __builtin_trap();
}

static sigjmp_buf after;

static void lock_and_leave(int signal) {
    lock_in_handler(signal);
    siglongjmp(after, 1);
}

// By the thread's own fault.
static void trap(void) {
    sigaction(SIGILL, &(struct sigaction){.sa_handler = lock_and_leave}, NULL);
    TAKE(&a);
    if (!sigsetjmp(after, 1))
        fault(SIGILL);
    TAKE(&a);
}

static pthread_t target;

static void *kills(void *signal) {
    pthread_kill(target, *(int *)signal);
    return NULL;
}

static void send_from_another(int signal) {
    pthread_t thread;
    target = pthread_self();
    pthread_create(&thread, NULL, kills, &signal);
    pthread_join(thread, NULL);
}

static void interrupt(void) {
    with_handler(SIGUSR1, send_from_another);
}

static void *sleeper(void *unused) {
    usleep(1000);
    return unused;
}

static Lock arena[3];

static void prepare(void) {
    for (int i = 0; i < 3; i++)
        pthread_mutex_lock(&arena[i]);
}

static void parent(void) {
    for (int i = 3; i-- > 0;)
        pthread_mutex_unlock(&arena[i]);
}

static void child(void) {
    for (int i = 3; i-- > 0;)
        pthread_mutex_init(&arena[i], NULL);
}

// As allocators do: in the child the locks are not released but made anew.
static void reinit(void) {
    for (int i = 0; i < 3; i++)
        pthread_mutex_init(&arena[i], NULL);
    pthread_atfork(prepare, parent, child);
    if (fork() == 0) {
        TAKE(&a, &arena[1]);
        pthread_t thread;
        pthread_create(&thread, NULL, sleeper, NULL);
        pthread_join(thread, NULL);
        _exit(0);
    }
    wait(NULL);
}

static Lock pads[4], element;

static void make(Lock *lock) {
    pthread_mutex_init(lock, NULL);
}

static void make_pipeline(void) {
    for (int i = 0; i < 4; i++)
        make(&pads[i]);
    pthread_mutex_init(&element, NULL);
}

static void pipeline(void) {
    make_pipeline();
    TAKE(&pads[0], &element);
    ELSEWHERE(&pads[0], &element, &pads[1]);
}

static void pipeline_seen_before(void) {
    make_pipeline();
    TAKE(&pads[2], &pads[3]);
    pipeline();
}

static void pipeline_seen_between(void) {
    make_pipeline();
    TAKE(&pads[0], &element);
    TAKE(&pads[2], &pads[3]);
    ELSEWHERE(&pads[0], &element, &pads[1]);
}

static void pipeline_back(void) {
    pipeline();
    TAKE(&pads[1], &element);
}

// The dependency from before is that of the one lock.
static void pipeline_turned(void) {
    make_pipeline();
    TAKE(&pads[1], &element);
    TAKE(&pads[2], &pads[3]);
    ELSEWHERE(&element, &pads[1]);
}

// Nothing says that these two have an order.
static void two_of_a_class(void) {
    make_pipeline();
    TAKE(&pads[0], &element);
    ELSEWHERE(&element, &pads[1]);
}

static void plain(void) {
    TAKE(&a, &b);
    ELSEWHERE(&b, &a);
}

static void alone(void) {
    TAKE(&a, &b);
    TAKE(&b, &a);
}

static void *takes_both(void *unused) {
    alone();
    return unused;
}

// The orders are one thread's, and the locks are not.
static void alone_among_others(void) {
    TAKE(&a);
    TAKE(&b);
    pthread_t thread;
    pthread_create(&thread, NULL, takes_both, NULL);
    pthread_join(thread, NULL);
    TAKE(&a);
    TAKE(&b);
}

static void one_after_the_other(void) {
    ELSEWHERE(&a, &b);
    ELSEWHERE(&b, &a);
    for (int i = 0; i < 10; i++)
        ELSEWHERE(&a, &b);
}

static void *takes_two_of_three(void *unused) {
    TAKE(&a, &b);
    TAKE(&b, &c);
    return unused;
}

static void two_for_three(void) {
    TAKE(&c, &a);
    pthread_t thread;
    pthread_create(&thread, NULL, takes_two_of_three, NULL);
    pthread_join(thread, NULL);
}

// Then another thread uses one of the locks.
static void alone_at_first(void) {
    alone();
    ELSEWHERE(&c);
    ELSEWHERE(&b);
    ELSEWHERE(&a);
}

static void second_thread(void) {
    TAKE(&c);
    ELSEWHERE(&a, &b);
    pthread_t thread;
    pthread_create(&thread, NULL, takes_both, NULL);
    pthread_join(thread, NULL);
    TAKE(&a, &b);
}

static pthread_barrier_t barrier;

static void *waits_and_takes(void *unused) {
    pthread_barrier_wait(&barrier);
    TAKE(&b, &a);
    return unused;
}

// It begins early, and takes its first lock when the other thread has ended.
static void late(void) {
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, waits_and_takes, NULL);
    ELSEWHERE(&a, &b);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
}

static void *takes_back(void *unused) {
    TAKE(&b, &a);
    return unused;
}

// The report is made on the smallest stack that a thread can have.
static void small_stack(void) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN);
    TAKE(&a, &c, &b);
    pthread_t thread;
    pthread_create(&thread, &attributes, takes_back, NULL);
    pthread_join(thread, NULL);
}

static Lock constructors[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};

// Before the library's own constructor.
static void before(int count, char **names, char **environment) {
    (void)count, (void)names, (void)environment;
    TAKE(&constructors[0], &constructors[1]);
}

__attribute__((section(".preinit_array"), used)) static void (*const preinit)(int, char **,
                                                                              char **) = before;

static void *back(void *unused) {
    TAKE(&constructors[1], &constructors[0]);
    return unused;
}

// The thread that ran the constructors is told from others too.
static void constructed(void) {
    ELSEWHERE(&c);
    back(NULL);
}

static const struct {
    const char *name;
    void (*run)(void);
} SCENES[] = {
#define SCENE(name) {#name, name}
    SCENE(gate),           SCENE(gate_of_three),        SCENE(a_gate_each),
    SCENE(gate_gone),      SCENE(two_gates),            SCENE(gate_once),
    SCENE(gate_shared),    SCENE(trap),                 SCENE(interrupt),
    SCENE(reinit),         SCENE(pipeline),             SCENE(pipeline_seen_before),
    SCENE(pipeline_back),  SCENE(pipeline_seen_between), SCENE(two_of_a_class),
    SCENE(pipeline_turned), SCENE(plain), SCENE(small_stack),          SCENE(alone),
    SCENE(alone_among_others), SCENE(one_after_the_other), SCENE(two_for_three),
    SCENE(constructed), SCENE(alone_at_first), SCENE(second_thread), SCENE(late),
};

int main(int count, char **names) {
    for (size_t i = 0; count > 1 && i < sizeof SCENES / sizeof *SCENES; i++)
        if (!strcmp(names[1], SCENES[i].name)) {
            SCENES[i].run();
            puts("done");
            return 0;
        }
    return 1;
}
