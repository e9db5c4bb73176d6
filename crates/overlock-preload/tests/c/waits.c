/* Waits that a thread may spin before: they begin and end as without us. A partner first answers
 * soon, so that spins become worth it; then the waits that nobody answers are interrupted. */
#include "check.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <setjmp.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>

enum { ROUNDS = 2000, SIGNALS = 300 };

enum way { FUTEX, SEMAPHORE, EPOLL, EPOLL_MASKED, POLL, POLL_MASKED, SELECT, SELECT_MASKED, INPUT, WAYS };

static atomic_uint word;
static sem_t semaphore;
static int to_partner[2], to_me[2], epoll;
static atomic_int handled;
static double handled_at, handled_again_at;
static int all_missed, missed_by_pause;

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

static long futex(void *at, int operation, unsigned value, struct timespec *time)
{
    return syscall(SYS_futex, at, operation, value, time, NULL, FUTEX_BITSET_MATCH_ANY);
}

/* One wait without an end. Returns what the function does. */
static long wait_by(enum way way)
{
    struct epoll_event event;
    struct pollfd file = {to_me[0], POLLIN, 0};
    fd_set set;
    sigset_t none;
    char byte;
    sigemptyset(&none);
    FD_ZERO(&set);
    FD_SET(to_me[0], &set);
    switch (way) {
    case FUTEX: return futex(&word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, NULL);
    case SEMAPHORE: return sem_wait(&semaphore);
    case EPOLL: return epoll_wait(epoll, &event, 1, -1);
    case EPOLL_MASKED: return epoll_pwait(epoll, &event, 1, -1, &none);
    case POLL: return poll(&file, 1, -1);
    case POLL_MASKED: return ppoll(&file, 1, NULL, &none);
    case SELECT: return select(to_me[0] + 1, &set, NULL, NULL, NULL);
    case SELECT_MASKED: return pselect(to_me[0] + 1, &set, NULL, NULL, NULL, &none);
    default: return read(to_me[0], &byte, 1);
    }
}

static int is_masked(enum way way)
{
    return way == EPOLL_MASKED || way == POLL_MASKED || way == SELECT_MASKED;
}

static void *answers(void *way)
{
    char byte;
    unsigned delay = 1;
    for (;;) {
        if (read(to_partner[0], &byte, 1) != 1) {
            CHECK(errno == EINTR);
            continue;
        }
        if (byte == 'q')
            break;
        if (byte == 's') {
            delay = delay * 1103515245 + 12345;
            for (double end = now_us() + 8 + (delay >> 16) % 40; now_us() < end;)
                ;
            OK(kill(getpid(), SIGUSR1));
            continue;
        }
        /* An answer that is there at once makes no spin worth it. */
        for (double end = now_us() + 5; now_us() < end;)
            ;
        if ((long)way == FUTEX) {
            word = 1;
            futex(&word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL);
        } else if ((long)way == SEMAPHORE) {
            sem_post(&semaphore);
        } else {
            CHECK(write(to_me[1], &byte, 1) == 1);
        }
    }
    return NULL;
}

/* A wait that the partner answers. Returns how many signals interrupted it. */
static int round_trip(enum way way)
{
    char byte = 0;
    int interrupted = 0;
    word = 0;
    CHECK(write(to_partner[1], &byte, 1) == 1);
    long result = wait_by(way);
    /* By a partner that got a CPU late: the timer had ended the wait which it was to interrupt. */
    for (; result == -1 && errno == EINTR; ++interrupted)
        result = wait_by(way);
    if (way == FUTEX)
        CHECK(result == 0 || (result == -1 && errno == EAGAIN));
    else if (way == SEMAPHORE)
        CHECK(result == 0);
    else
        CHECK(result == 1 && (way == INPUT || read(to_me[0], &byte, 1) == 1));
    while (way == FUTEX && word == 0)
        sched_yield();
    word = 0;
    return interrupted;
}

static long preemptions(void)
{
    struct rusage usage;
    OK(getrusage(RUSAGE_THREAD, &usage));
    return usage.ru_nivcsw;
}

static void handle(int signal)
{
    (void)signal;
    switch (handled++) {
    case 0: handled_at = now_us(); break;
    case 1: handled_again_at = now_us(); break;
    }
}

/* Whether the first signal came after the call and ended no wait, so that the timer's next one had
 * to. Two signals that wait for a thread without a CPU are handled in a row, and the first counts
 * as missed where the thread lost its CPU before the call. */
static int is_missed(double called, long preemptions_before)
{
    return handled > 1 && handled_at > called + 3 && handled_again_at > handled_at + 10000
           && preemptions() == preemptions_before;
}

/* The kernel sends other timers' signals to the thread that runs then. */
static timer_t timer_for_me(void)
{
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    OK(timer_create(CLOCK_MONOTONIC, &event, &timer));
    return timer;
}

/* Interrupts the calling thread's wait after so many microseconds, and each 20 ms from then on: a
 * signal that comes just before the call is missed, as without us. */
static void interrupt_after(timer_t timer, long us)
{
    struct itimerspec time = {{0, us == 0 ? 0 : 20000000}, {0, us * 1000}};
    OK(timer_settime(timer, 0, &time, NULL));
}

/* How many signals come too early for a wait that nothing spins before: on a slow machine, or on
 * one that stops, a call takes long to begin. */
static void measure_pause(void)
{
    timer_t timer = timer_for_me();
    unsigned random = 1;
    for (int i = 0; i < SIGNALS; ++i) {
        usleep(1000);
        random = random * 1103515245 + 12345;
        handled = 0;
        long before = preemptions();
        interrupt_after(timer, 8 + (random >> 16) % 40);
        double called = now_us();
        pause();
        interrupt_after(timer, 0);
        missed_by_pause += is_missed(called, before);
    }
    OK(timer_delete(timer));
}

static void check_way(enum way way)
{
    static const char *const names[] = {"futex", "semaphore", "epoll", "epoll, masked", "poll",
                                        "poll, masked", "select", "select, masked", "input"};
    pthread_t partner;
    sigset_t set, old;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    OK(pthread_sigmask(SIG_BLOCK, &set, &old));
    /* The partner blocks no signals otherwise: they must not go to it. */
    if (!is_masked(way))
        OK(pthread_sigmask(SIG_SETMASK, &old, NULL));
    OK(pthread_create(&partner, NULL, answers, (void *)way));
    for (int i = 0; i < ROUNDS; ++i)
        round_trip(way);

    timer_t timer = timer_for_me();
    unsigned random = 1;
    int missed = 0;
    for (int i = 0; i < SIGNALS; ++i) {
        /* A thread spends a twentieth of its time on spins in vain. */
        usleep(1000);
        for (int j = 0; j < 4; ++j)
            round_trip(way);
        random = random * 1103515245 + 12345;
        handled = 0;
        long before = preemptions();
        /* By a timer, or by the partner, who signals the process and blocks nothing. */
        interrupt_after(timer, i % 2 ? 20000 : 8 + (random >> 16) % 40);
        CHECK(i % 2 == 0 || write(to_partner[1], "s", 1) == 1);
        double called = now_us();
        CHECK(wait_by(way) == -1 && errno == EINTR);
        interrupt_after(timer, 0);
        CHECK(handled >= 1);
        missed += is_missed(called, before);
    }
    CHECK(write(to_partner[1], "q", 1) == 1);
    OK(pthread_join(partner, NULL));
    OK(timer_delete(timer));
    OK(pthread_sigmask(SIG_SETMASK, &old, NULL));
    CHECK(missed <= SIGNALS / 100 + missed_by_pause || !is_masked(way));
    all_missed += missed;
    printf("%s: interrupted\n", names[way]);
}

/* Blocks no signal, and handles some, but none comes: no wait ends with EINTR. */
static void check_no_signals(void)
{
    for (enum way way = 0; way < WAYS; ++way) {
        pthread_t partner;
        sigset_t before, after;
        OK(pthread_create(&partner, NULL, answers, (void *)way));
        OK(pthread_sigmask(SIG_SETMASK, NULL, &before));
        const double end = now_us() + 200000;
        while (now_us() < end)
            CHECK(round_trip(way) == 0);
        OK(pthread_sigmask(SIG_SETMASK, NULL, &after));
        for (int signal = 1; signal < NSIG; ++signal)
            CHECK(sigismember(&before, signal) == sigismember(&after, signal));
        CHECK(write(to_partner[1], "q", 1) == 1);
        OK(pthread_join(partner, NULL));
    }
    puts("no signals");
}

/* What is there at once, or never waits, is not ended by signals. */
static void check_no_waits(void)
{
    int file = open("/proc/self/exe", O_RDONLY), empty[2];
    char byte = 0;
    OK(file < 0 || pipe(empty));
    OK(fcntl(empty[0], F_SETFL, O_NONBLOCK));
    timer_t timer = timer_for_me();
    struct itimerspec often = {{0, 200000}, {0, 200000}};
    OK(timer_settime(timer, 0, &often, NULL));
    for (double end = now_us() + 1e6; now_us() < end;) {
        CHECK(pread(file, &byte, 1, 0) == 1 && lseek(file, 0, SEEK_SET) == 0);
        CHECK(read(file, &byte, 1) == 1);
        CHECK(read(empty[0], &byte, 1) == -1 && errno == EAGAIN);
        CHECK(read(-1, &byte, 1) == -1 && errno == EBADF);
        CHECK(write(to_me[1], &byte, 1) == 1 && read(to_me[0], &byte, 1) == 1);
        CHECK(futex(&word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 1, NULL) == -1 && errno == EAGAIN);
    }
    OK(timer_delete(timer));
    OK(close(file) || close(empty[0]) || close(empty[1]));
    puts("no waits");
}

static void softens(int signal_number)
{
    handle(signal_number);
    /* From now on with SA_RESTART. */
    CHECK(signal(SIGUSR1, softens) == softens);
    /* The wait has gone on. */
    if (handled > 1)
        CHECK(write(to_me[1], "", 1) == 1);
}

/* What counts is how the handler was installed when the signal came. */
static void check_handlers(void)
{
    struct sigaction action = {.sa_handler = softens}, old;
    pthread_t partner;
    int missed = 0;
    OK(pthread_create(&partner, NULL, answers, (void *)INPUT));
    OK(sigaction(SIGUSR1, NULL, &old));
    timer_t timer = timer_for_me();
    for (int i = 0; i < SIGNALS; ++i) {
        usleep(1000);
        round_trip(INPUT);
        OK(sigaction(SIGUSR1, &action, NULL));
        handled = 0;
        long before = preemptions();
        interrupt_after(timer, 8 + i % 40);
        double called = now_us();
        long result = wait_by(INPUT);
        CHECK(result == 1 || (result == -1 && errno == EINTR));
        interrupt_after(timer, 0);
        missed += result == 1 && is_missed(called, before);
        /* By a handler that ran again after the wait. */
        char byte;
        struct pollfd file = {to_me[0], POLLIN, 0};
        while (poll(&file, 1, 0) == 1)
            CHECK(read(to_me[0], &byte, 1) == 1);
    }
    CHECK(missed < SIGNALS / 10 + 3 * missed_by_pause);
    OK(sigaction(SIGUSR1, &old, NULL));
    CHECK(write(to_partner[1], "q", 1) == 1);
    OK(pthread_join(partner, NULL));
    OK(timer_delete(timer));
    puts("handlers");
}

static jmp_buf before_wait;

static void jumps(int signal)
{
    (void)signal;
    siglongjmp(before_wait, 1);
}

/* Handlers that leave waits by a jump. */
static void check_jumps(void)
{
    struct sigaction action = {.sa_handler = jumps}, old;
    pthread_t partner;
    OK(pthread_create(&partner, NULL, answers, (void *)INPUT));
    OK(sigaction(SIGUSR1, &action, &old));
    CHECK(old.sa_handler == handle);
    timer_t timer = timer_for_me();
    for (volatile int i = 0; i < SIGNALS; ++i) {
        usleep(1000);
        round_trip(INPUT);
        if (sigsetjmp(before_wait, 1) == 0) {
            interrupt_after(timer, 8 + i % 40);
            wait_by(INPUT);
            CHECK(0);
        }
        interrupt_after(timer, 0);
    }
    OK(sigaction(SIGUSR1, &old, &action));
    CHECK(action.sa_handler == jumps);
    CHECK(write(to_partner[1], "q", 1) == 1);
    OK(pthread_join(partner, NULL));
    OK(timer_delete(timer));
    puts("jumps");
}

static void check_times(void)
{
    const struct timespec three = {0, 3000000};
    struct timespec time = three;
    struct timeval left = {0, 3000};
    const time_t long_s = 1000;
    struct epoll_event event;
    struct pollfd file = {to_me[0], POLLIN, 0};
    for (int way = 0; way < 6; ++way) {
        fd_set set;
        FD_ZERO(&set);
        FD_SET(to_me[0], &set);
        double start = now_us();
        long result = way == 0   ? epoll_wait(epoll, &event, 1, 3)
                      : way == 1 ? poll(&file, 1, 3)
                      : way == 2 ? ppoll(&file, 1, &time, NULL)
                      : way == 3 ? select(to_me[0] + 1, &set, NULL, NULL, &left)
                      : way == 4 ? pselect(to_me[0] + 1, &set, NULL, NULL, &time, NULL)
                                 : futex(&word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, &time);
        int error = errno;
        CHECK(now_us() - start >= 2999);
        CHECK(way == 5 ? result == -1 && error == ETIMEDOUT : result == 0);
        CHECK(time.tv_nsec == three.tv_nsec);
        CHECK((way != 3 && way != 4) || !FD_ISSET(to_me[0], &set));
    }
    CHECK(left.tv_sec == 0 && left.tv_usec == 0);
    /* What is there is found at once, and select says what is left. */
    char byte = 0;
    CHECK(write(to_me[1], &byte, 1) == 1);
    for (int i = 0; i < 100; ++i) {
        fd_set set;
        FD_ZERO(&set);
        FD_SET(to_me[0], &set);
        left.tv_sec = long_s;
        left.tv_usec = 0;
        CHECK(select(to_me[0] + 1, &set, NULL, NULL, &left) == 1 && FD_ISSET(to_me[0], &set));
        CHECK(left.tv_sec == long_s ? left.tv_usec == 0 : left.tv_sec > long_s / 2);
        CHECK(ppoll(&file, 1, NULL, NULL) == 1 && file.revents == POLLIN);
    }
    CHECK(read(to_me[0], &byte, 1) == 1);
    puts("times");
}

static void check_errors(void)
{
    struct epoll_event event;
    char byte;
    int never[2];
    OK(pipe2(never, O_NONBLOCK));
    struct pollfd *hole = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    OK(munmap(hole, 4096));
    for (int i = 0; i < 100; ++i) {
        CHECK(futex(hole, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, NULL) == -1 && errno == EFAULT);
        CHECK(futex((char *)&word + 1, FUTEX_WAIT, 0, NULL) == -1 && errno == EINVAL);
        CHECK(futex(&word, FUTEX_WAIT, 1, NULL) == -1 && errno == EAGAIN);
        CHECK(epoll_wait(-1, &event, 1, -1) == -1 && errno == EBADF);
        CHECK(epoll_wait(epoll, &event, 0, -1) == -1 && errno == EINVAL);
        CHECK(poll(hole, 1, 100) == -1 && errno == EFAULT);
        CHECK(select(-1, NULL, NULL, NULL, NULL) == -1 && errno == EINVAL);
        CHECK(read(never[0], &byte, 1) == -1 && errno == EAGAIN);
        CHECK(read(-1, &byte, 1) == -1 && errno == EBADF);
        CHECK(recv(never[0], &byte, 1, 0) == -1 && errno == ENOTSOCK);
        CHECK(accept(never[0], NULL, NULL) == -1 && errno == ENOTSOCK);
    }
    OK(close(never[1]));
    CHECK(read(never[0], &byte, 1) == 0);
    OK(close(never[0]));
    puts("errors");
}

/* The kernel refuses a time that is none, and other wrong arguments, where the wait would end at
 * once, too: after waits on the same object for which spins were worth it. */
static void check_refusals(void)
{
    static struct timespec none[] = {{0, 1000000000}, {-1, 500000000}, {1, -1}, {5, 2000000000}};
    struct epoll_event event;
    char byte = 0;
    int with_clock = 0;
    pthread_t partner;
    OK(pthread_create(&partner, NULL, answers, (void *)EPOLL));
    for (int i = 0; i < ROUNDS; ++i) {
        for (enum way way = EPOLL; way <= SELECT; ++way) {
            if (!is_masked(way))
                round_trip(way);
        }
        struct timespec *time = &none[i % 4];
        struct pollfd file = {to_me[0], POLLIN, 0};
        fd_set set;
        FD_ZERO(&set);
        FD_SET(to_me[0], &set);
        CHECK(write(to_me[1], &byte, 1) == 1);
        CHECK(epoll_pwait2(epoll, &event, 1, time, NULL) == -1 && errno == EINVAL);
        CHECK(ppoll(&file, 1, time, NULL) == -1 && errno == EINVAL);
        CHECK(pselect(to_me[0] + 1, &set, NULL, NULL, time, NULL) == -1 && errno == EINVAL);
        CHECK(read(to_me[0], &byte, 1) == 1);
        const int private = FUTEX_PRIVATE_FLAG;
        CHECK(futex(&word, FUTEX_WAIT | private, 7, time) == -1 && errno == EINVAL);
        CHECK(futex(&word, FUTEX_WAIT_BITSET | private, 7, time) == -1 && errno == EINVAL);
        CHECK(syscall(SYS_futex, &word, FUTEX_WAIT_BITSET | private, 7, NULL, NULL, 0) == -1
              && errno == EINVAL);
        /* Few kernels take it. */
        CHECK(futex(&word, FUTEX_WAIT | FUTEX_CLOCK_REALTIME | private, 7, NULL) == -1);
        CHECK(i == 0 || errno == with_clock);
        with_clock = errno;
    }
    CHECK(write(to_partner[1], "q", 1) == 1);
    OK(pthread_join(partner, NULL));
    printf("refusals, %d for a clock\n", with_clock);
}

static void *polls(void *unused)
{
    struct pollfd file = {to_me[0], POLLIN, 0};
    for (;;)
        poll(&file, 1, -1);
    return unused;
}

static void check_cancellation(void)
{
    for (int i = 0; i < 200; ++i) {
        pthread_t thread;
        void *result;
        OK(pthread_create(&thread, NULL, polls, NULL));
        nanosleep(&(struct timespec){0, i % 20 * 5000}, NULL);
        OK(pthread_cancel(thread));
        OK(pthread_join(thread, &result));
        CHECK(result == PTHREAD_CANCELED);
    }
    puts("cancelled");
}

/* vfork() and clone() return twice, to a frame that must still be there. */
static void check_children(void)
{
    for (int i = 0; i < 20; ++i) {
        int status;
        pid_t child = syscall(SYS_fork);
        if (child == 0) {
            /* Nothing is waited for with what the parent has learned. */
            struct timespec time = {0, 1000000};
            _exit(futex(&word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, &time) == -1
                          && errno == ETIMEDOUT
                      ? 7
                      : 1);
        }
        CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7);
    }
    puts("children");
}

/* Before libraries are initialised. */
static void install(void)
{
    struct sigaction action = {.sa_handler = handle};
    OK(sigaction(SIGUSR1, &action, NULL));
}

__attribute__((section(".preinit_array"), used)) static void (*const early)(void) = install;

int main(void)
{
    struct epoll_event event = {.events = EPOLLIN};
    OK(sem_init(&semaphore, 0, 0));
    OK(pipe(to_partner) || pipe(to_me));
    epoll = epoll_create1(0);
    OK(epoll_ctl(epoll, EPOLL_CTL_ADD, to_me[0], &event));
    alarm(900);
    measure_pause();
    for (enum way way = 0; way < WAYS; ++way)
        check_way(way);
    /* Where signals are lost in spins it is ten to a hundred times as much. */
    CHECK(all_missed < SIGNALS / 10 + 2 * WAYS * missed_by_pause);
    check_no_signals();
    check_no_waits();
    check_handlers();
    check_jumps();
    check_times();
    check_errors();
    check_refusals();
    check_cancellation();
    check_children();
    return 0;
}
