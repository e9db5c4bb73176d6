/* A lock that a signal handler takes: scenes that the validator must report, or must not. */
#include "check.h"

#include <setjmp.h>
#include <ucontext.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t inner = PTHREAD_MUTEX_INITIALIZER;
static sigjmp_buf back;

static void use(pthread_mutex_t *which)
{
    pthread_mutex_lock(which);
    pthread_mutex_unlock(which);
}

static void locks(int signal)
{
    (void)signal;
    use(&mutex);
}

static void tries(int signal)
{
    (void)signal;
    if (pthread_mutex_trylock(&mutex) == 0)
        pthread_mutex_unlock(&mutex);
}

static void jumps(int signal)
{
    siglongjmp(back, signal);
}

static ucontext_t there;

static void switches(int signal)
{
    (void)signal;
    setcontext(&there);
}

static void exits(int signal)
{
    _exit(signal == SIGUSR1 ? 0 : 1);
}

static void locks_outer(int signal)
{
    (void)signal;
    use(&outer);
}

static void informed(int signal, siginfo_t *info, void *context)
{
    (void)context;
    CHECK(info->si_signo == signal);
    use(&mutex);
}

static void install(void (*handler)(int))
{
    struct sigaction new;
    memset(&new, 0, sizeof new);
    new.sa_handler = handler;
    CHECK(sigaction(SIGUSR1, &new, NULL) == 0);
}

static void block(int how)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    OK(pthread_sigmask(how, &set, NULL));
}

/* Nested in the other lock, with the signal blocked. */
static void chain(void)
{
    block(SIG_BLOCK);
    pthread_mutex_lock(&outer);
    use(&inner);
    pthread_mutex_unlock(&outer);
    block(SIG_UNBLOCK);
}

int main(int count, char **arguments)
{
    const char *what = count > 1 ? arguments[1] : "";
    if (strcmp(what, "locks") == 0) {
        install(locks);
        raise(SIGUSR1);
        use(&mutex);
    } else if (strcmp(what, "signal") == 0) {
        use(&mutex);
        signal(SIGUSR1, locks);
        raise(SIGUSR1);
    } else if (strcmp(what, "informed") == 0) {
        struct sigaction new;
        memset(&new, 0, sizeof new);
        new.sa_sigaction = informed;
        new.sa_flags = SA_SIGINFO;
        CHECK(sigaction(SIGUSR1, &new, NULL) == 0);
        use(&mutex);
        raise(SIGUSR1);
    } else if (strcmp(what, "blocked") == 0) {
        install(locks);
        raise(SIGUSR1);
        block(SIG_BLOCK);
        use(&mutex);
        raise(SIGUSR1);
        block(SIG_UNBLOCK);
    } else if (strcmp(what, "tries") == 0) {
        install(tries);
        raise(SIGUSR1);
        use(&mutex);
    } else if (strcmp(what, "jumps") == 0) {
        install(jumps);
        use(&mutex);
        if (sigsetjmp(back, 1) == 0)
            raise(SIGUSR1);
        use(&mutex);
        use(&mutex);
    } else if (strcmp(what, "switches") == 0) {
        volatile int left = 0;
        install(switches);
        use(&mutex);
        CHECK(getcontext(&there) == 0);
        if (!left) {
            left = 1;
            raise(SIGUSR1);
        }
        use(&mutex);
    } else if (strcmp(what, "vfork") == 0) {
        /* A child that shares our memory, and never returns from its handler. */
        install(exits);
        use(&mutex);
        pid_t child = vfork();
        if (child == 0) {
            raise(SIGUSR1);
            _exit(2);
        }
        reap(child);
        use(&mutex);
    } else if (strcmp(what, "nested") == 0) {
        /* After the handler's end the thread runs ordinary code again. */
        install(tries);
        raise(SIGUSR1);
        use(&mutex);
        use(&outer);
    } else if (strcmp(what, "chain") == 0) {
        install(locks_outer);
        use(&inner);
        chain();
        raise(SIGUSR1);
    } else if (strcmp(what, "chain_late") == 0) {
        /* The lock class that the signal may interrupt comes last, after all dependencies. */
        install(locks_outer);
        chain();
        raise(SIGUSR1);
        use(&inner);
    } else if (strcmp(what, "chain_blocked") == 0) {
        install(locks_outer);
        chain();
        raise(SIGUSR1);
        block(SIG_BLOCK);
        use(&inner);
        block(SIG_UNBLOCK);
    } else {
        return 2;
    }
    puts("done");
    return 0;
}
