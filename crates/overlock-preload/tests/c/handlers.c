/* Signal handlers: the library between a program and glibc changes neither their arguments nor what
 * sigaction() returns. */
#include "check.h"

#include <setjmp.h>
#include <ucontext.h>

/* Deprecated functions are tested, too. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile sig_atomic_t runs, depth, deepest, value, code, has_context;

static void simple(int signal)
{
    if (++depth > deepest)
        deepest = depth;
    if (runs++ == 0 && signal == SIGUSR2)
        raise(signal);
    depth--;
}

static void informed(int signal, siginfo_t *info, void *context)
{
    ucontext_t *at = context;
    runs++;
    value = info->si_value.sival_int;
    code = info->si_code == SI_QUEUE && info->si_signo == signal;
    has_context = !sigismember(&at->uc_sigmask, SIGUSR1);
    int error = errno;
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    CHECK(errno == error);
}

static struct sigaction action(void (*handler)(int), int flags)
{
    struct sigaction new;
    memset(&new, 0, sizeof new);
    new.sa_handler = handler;
    new.sa_flags = flags;
    return new;
}

/* Returns the present disposition. */
static struct sigaction installed(int signal)
{
    struct sigaction old;
    CHECK(sigaction(signal, NULL, &old) == 0);
    return old;
}

static const char *handler_name(void (*handler)(int))
{
    return handler == SIG_DFL                            ? "SIG_DFL"
           : handler == SIG_IGN                          ? "SIG_IGN"
           : handler == SIG_ERR                          ? "SIG_ERR"
           : handler == simple                           ? "simple"
           : handler == (void (*)(int))(void *)informed ? "informed"
                                                         : "another";
}

static void actions(void)
{
    struct sigaction old, new = action(simple, SA_RESTART);
    sigaddset(&new.sa_mask, SIGHUP);
    CHECK(sigaction(SIGUSR1, &new, &old) == 0);
    printf("before: %s\n", handler_name(old.sa_handler));
    old = installed(SIGUSR1);
    CHECK((old.sa_flags & (SA_RESTART | SA_SIGINFO)) == SA_RESTART);
    CHECK(sigismember(&old.sa_mask, SIGHUP) && !sigismember(&old.sa_mask, SIGTERM));
    printf("asked: %s\n", handler_name(old.sa_handler));
    raise(SIGUSR1);
    CHECK(runs == 1);
    /* The same object for the new and the old action. */
    new = action(NULL, SA_SIGINFO);
    new.sa_sigaction = informed;
    struct sigaction *volatile same = &new;
    CHECK(sigaction(SIGUSR1, &new, same) == 0);
    printf("replaced: %s\n", handler_name(new.sa_handler));
    runs = 0;
    CHECK(sigqueue(getpid(), SIGUSR1, (union sigval){.sival_int = 42}) == 0);
    printf("informed: %d %d %d %d\n", runs, value, code, has_context);
    new = action(SIG_IGN, 0);
    CHECK(sigaction(SIGUSR1, &new, &old) == 0);
    printf("replaced: %s\n", handler_name(old.sa_handler));
    raise(SIGUSR1);
    CHECK(runs == 1);
    new = action(SIG_DFL, 0);
    CHECK(sigaction(SIGUSR1, &new, &old) == 0);
    printf("replaced: %s\n", handler_name(old.sa_handler));
    new = action(simple, 0);
    for (int bad = 0; bad < 3; bad++) {
        int signal = (int[]){0, SIGKILL, 1000}[bad];
        ANSWER_ERRNO(sigaction(signal, &new, &old));
    }
}

static void flags(void)
{
    struct sigaction new = action(simple, SA_RESETHAND);
    runs = deepest = 0;
    CHECK(sigaction(SIGUSR1, &new, NULL) == 0);
    raise(SIGUSR1);
    printf("reset: %d %s\n", runs, handler_name(installed(SIGUSR1).sa_handler));
    for (int nodefer = 0; nodefer < 2; nodefer++) {
        runs = deepest = 0;
        new = action(simple, nodefer ? SA_NODEFER : 0);
        CHECK(sigaction(SIGUSR2, &new, NULL) == 0);
        raise(SIGUSR2);
        printf("nodefer %d: %d runs, %d deep\n", nodefer, runs, deepest);
    }
}

static void old_ways(void)
{
    runs = 0;
    printf("signal: %s", handler_name(signal(SIGUSR1, simple)));
    printf(" %s", handler_name(signal(SIGUSR1, simple)));
    raise(SIGUSR1);
    raise(SIGUSR1);
    CHECK(installed(SIGUSR1).sa_flags & SA_RESTART);
    CHECK(siginterrupt(SIGUSR1, 1) == 0);
    CHECK(!(installed(SIGUSR1).sa_flags & SA_RESTART));
    raise(SIGUSR1);
    printf(" %d %s\n", runs, handler_name(signal(SIGUSR1, SIG_DFL)));
    errno = 0;
    printf("bad: %s", handler_name(signal(1000, simple)));
    printf(" %s\n", name_of(errno));
    printf("ssignal: %s", handler_name(ssignal(SIGUSR1, simple)));
    printf(" %s\n", handler_name(ssignal(SIGUSR1, SIG_IGN)));
    printf("sysv_signal: %s", handler_name(sysv_signal(SIGUSR1, simple)));
    raise(SIGUSR1);
    printf(" %d %s\n", runs, handler_name(sysv_signal(SIGUSR1, SIG_DFL)));
    printf("sigset: %s", handler_name(sigset(SIGUSR1, simple)));
    raise(SIGUSR1);
    printf(" %d %s", runs, handler_name(sigset(SIGUSR1, SIG_HOLD)));
    printf(" %s", sigset(SIGUSR1, SIG_DFL) == SIG_HOLD ? "held" : "?");
    printf(" %s\n", handler_name(signal(SIGUSR1, SIG_DFL)));
}

static void children(void)
{
    CHECK(signal(SIGUSR1, simple) == SIG_DFL);
    runs = 0;
    pid_t child = fork();
    if (child == 0) {
        raise(SIGUSR1);
        CHECK(runs == 1 && installed(SIGUSR1).sa_handler == simple);
        CHECK(signal(SIGUSR1, SIG_DFL) == simple);
        _exit(0);
    }
    reap(child);
    /* The child has its own handlers, but shares the memory. */
    child = vfork();
    if (child == 0) {
        struct sigaction new = action(NULL, SA_SIGINFO);
        new.sa_sigaction = informed;
        sigaction(SIGUSR1, &new, NULL);
        _exit(0);
    }
    reap(child);
    raise(SIGUSR1);
    printf("after children: %d %s\n", runs, handler_name(installed(SIGUSR1).sa_handler));
}

static sigjmp_buf back;

static void jumps(int signal)
{
    siglongjmp(back, signal);
}

static void jumping(void)
{
    CHECK(signal(SIGUSR1, jumps) == simple);
    for (volatile int turn = 0; turn < 3; turn++) {
        int from = sigsetjmp(back, 1);
        if (from == 0)
            raise(SIGUSR1);
        CHECK(from == SIGUSR1);
    }
    volatile int turns = 0;
    int from = setjmp(back);
    if (turns++ < 3)
        longjmp(back, 7 + turns);
    printf("jumped: %d\n", from);
    CHECK(signal(SIGUSR1, SIG_DFL) == jumps);
}

int main(void)
{
    actions();
    flags();
    old_ways();
    children();
    jumping();
    return 0;
}
