/* Threads that end while they wait: cancelled, at a cancellation point or at any instruction, or by
 * pthread_exit in a signal handler. The others use the object as before. With an argument: readers
 * and writers, after whose end the C library's locks are of no use. */
#include "objects.h"

enum { USERS = 3, ROUNDS = 50 };

enum ending { DEFERRED, ANYWHERE, EXIT, ENDINGS };

static const char *const endings[] = {"cancelled", "cancelled anywhere", "ended by a handler"};

static enum way way;
static enum ending ending;
static atomic_int victim, cleaned;
static int answer;
static pthread_barrier_t all;

static void handle(int signal)
{
    (void)signal;
    pthread_exit((void *)7);
}

static void clean_up(void *with)
{
    (void)with;
    cleaned++;
    if (way == COND || way == COND_UNTIL) {
        answer = OTHER(pthread_mutex_trylock, &of_cond);
        if (answer == EBUSY)
            OK(pthread_mutex_unlock(&of_cond));
    }
}

static void *wait_and_end(void *with)
{
    int old;
    if (ending == ANYWHERE)
        OK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old));
    pthread_cleanup_push(clean_up, NULL);
    victim = gettid();
    wait_by(way);
    pthread_cleanup_pop(0);
    return with;
}

static void *use(void *with)
{
    pthread_barrier_wait(&all);
    for (int i = 0; i < ROUNDS; i++)
        wait_by(way);
    return with;
}

/* Makes the object one that is waited for. */
static void take(void)
{
    switch (way) {
    case MUTEX:
    case MUTEX_UNTIL: OK(pthread_mutex_lock(&normal)); break;
    case MUTEX_RECURSIVE: OK(pthread_mutex_lock(&recursive)); break;
    case MUTEX_ERRORCHECK: OK(pthread_mutex_lock(&errorcheck)); break;
    case READ:
    case READ_UNTIL: OK(pthread_rwlock_wrlock(&written)); break;
    case WRITE:
    case WRITE_UNTIL: OK(pthread_rwlock_rdlock(&read_only)); break;
    case COND:
    case COND_UNTIL: may_go = 0; break;
    case SEM:
    case SEM_UNTIL: OK(sem_wait(&sem)); break;
    default: break;
    }
}

static void give(void)
{
    switch (way) {
    case MUTEX:
    case MUTEX_UNTIL: OK(pthread_mutex_unlock(&normal)); break;
    case MUTEX_RECURSIVE: OK(pthread_mutex_unlock(&recursive)); break;
    case MUTEX_ERRORCHECK: OK(pthread_mutex_unlock(&errorcheck)); break;
    case READ:
    case READ_UNTIL: OK(pthread_rwlock_unlock(&written)); break;
    case WRITE:
    case WRITE_UNTIL: OK(pthread_rwlock_unlock(&read_only)); break;
    case COND:
    case COND_UNTIL:
        OK(pthread_mutex_lock(&of_cond));
        may_go = 1;
        OK(pthread_cond_broadcast(&cond));
        OK(pthread_mutex_unlock(&of_cond));
        break;
    case SEM:
    case SEM_UNTIL: OK(sem_post(&sem)); break;
    default: break;
    }
}

static void play(void)
{
    victim = cleaned = answer = 0;
    take();
    pthread_t thread = start(wait_and_end, NULL), users[USERS];
    while (victim == 0)
        sleep_ms(1);
    await_sleep(&victim);
    if (ending == EXIT)
        OK(pthread_kill(thread, SIGUSR1));
    else
        OK(pthread_cancel(thread));
    int outlives = ending == DEFERRED && way != COND && way != COND_UNTIL && way != SEM && way != SEM_UNTIL;
    if (outlives) {
        sleep_ms(2);
        give();
        if (way == BARRIER)
            pthread_barrier_wait(&barrier);
    }
    void *result = join(thread);
    printf("%s, %s: %s, cleaned up %d, the mutex was %s\n", way_names[way], endings[ending],
           result == PTHREAD_CANCELED ? "cancelled" : result == NULL ? "returned" : "ended", cleaned, name_of(answer));
    if (!outlives && way == BARRIER)
        /* It has arrived. */
        pthread_barrier_wait(&barrier);
    for (int i = 0; way != BARRIER && i < USERS; i++)
        users[i] = start(use, NULL);
    if (way != BARRIER)
        pthread_barrier_wait(&all);
    if (!outlives)
        give();
    for (int i = 0; way != BARRIER && i < USERS; i++)
        join(users[i]);
}

int main(int count, char **arguments)
{
    (void)arguments;
    later = in_ms(CLOCK_REALTIME, 1000000);
    OK(sem_init(&sem, 0, 1));
    OK(pthread_barrier_init(&barrier, NULL, 2));
    OK(pthread_barrier_init(&all, NULL, USERS + 1));
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    for (way = 0; way < WAYS; way++)
        for (ending = 0; ending < ENDINGS; ending++)
            if ((way >= READ && way <= WRITE_UNTIL) == (count > 1))
                play();
    return 0;
}
