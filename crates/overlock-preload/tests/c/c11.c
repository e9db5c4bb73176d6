/* C11's mutexes and conditions: every function, with its results. */
#include "check.h"
#include <threads.h>

/* Prints the result of a call: one of C11's numbers. */
#undef ANSWER
#define ANSWER(call) printf("%s: %d\n", #call, call)

static int in_thread(int (*function)(void *), void *argument)
{
    thrd_t thread;
    int result = -1;
    if (thrd_create(&thread, function, argument) != thrd_success || thrd_join(thread, &result) != thrd_success)
        return -1;
    return result;
}

static struct timespec soon(long milliseconds)
{
    struct timespec at;
    timespec_get(&at, TIME_UTC);
    at.tv_nsec += milliseconds * 1000000;
    at.tv_sec += at.tv_nsec / 1000000000;
    at.tv_nsec %= 1000000000;
    return at;
}

static int try(void *mutex)
{
    int result = mtx_trylock(mutex);
    if (result == thrd_success)
        mtx_unlock(mutex);
    return result;
}

static int wait_for_it(void *mutex)
{
    struct timespec at = soon(20);
    int result = mtx_timedlock(mutex, &at);
    if (result == thrd_success)
        mtx_unlock(mutex);
    return result;
}

static void with(const char *name, int type, int recursive)
{
    mtx_t mutex;
    printf("-- %s\n", name);
    ANSWER(mtx_init(&mutex, type));
    ANSWER(in_thread(try, &mutex));
    ANSWER(mtx_lock(&mutex));
    ANSWER(in_thread(try, &mutex));
    ANSWER(in_thread(wait_for_it, &mutex));
    ANSWER(mtx_trylock(&mutex));
    if (recursive) {
        ANSWER(mtx_lock(&mutex));
        ANSWER(mtx_unlock(&mutex));
        ANSWER(mtx_unlock(&mutex));
        ANSWER(in_thread(try, &mutex));
    }
    ANSWER(mtx_unlock(&mutex));
    ANSWER(in_thread(try, &mutex));
    ANSWER(in_thread(wait_for_it, &mutex));
    mtx_destroy(&mutex);
}

/* Two threads alternate. */
static mtx_t mutex;
static cnd_t changed;
static long turn;

static int player(void *argument)
{
    long mine = (long)argument;
    for (long i = mine; i < 20000; i += 2) {
        mtx_lock(&mutex);
        while (turn != i)
            cnd_wait(&changed, &mutex);
        turn++;
        if (i % 3)
            cnd_signal(&changed);
        else
            cnd_broadcast(&changed);
        mtx_unlock(&mutex);
    }
    return 7;
}

/* Counts with more threads than CPUs. */
static long count;

static int counter(void *unused)
{
    (void)unused;
    for (long i = 0; i < 50000; i++) {
        mtx_lock(&mutex);
        count++;
        mtx_unlock(&mutex);
    }
    return 0;
}

int main(void)
{
    with("plain", mtx_plain, 0);
    with("timed", mtx_timed, 0);
    with("recursive", mtx_plain | mtx_recursive, 1);
    with("timed and recursive", mtx_timed | mtx_recursive, 1);
    mtx_t none;
    ANSWER(mtx_init(&none, 64));

    ANSWER(mtx_init(&mutex, mtx_timed));
    ANSWER(cnd_init(&changed));
    ANSWER(cnd_signal(&changed));
    ANSWER(cnd_broadcast(&changed));
    struct timespec past = {0, 0}, at = soon(20);
    ANSWER(mtx_lock(&mutex));
    ANSWER(cnd_timedwait(&changed, &mutex, &past));
    ANSWER(cnd_timedwait(&changed, &mutex, &at));
    ANSWER(in_thread(try, &mutex));
    ANSWER(mtx_unlock(&mutex));

    thrd_t threads[8];
    int result;
    for (long i = 0; i < 2; i++)
        ANSWER(thrd_create(&threads[i], player, (void *)i));
    for (int i = 0; i < 2; i++) {
        ANSWER(thrd_join(threads[i], &result));
        ANSWER(result);
    }
    ANSWER((int)turn);
    for (int i = 0; i < 8; i++)
        ANSWER(thrd_create(&threads[i], counter, NULL));
    for (int i = 0; i < 8; i++)
        ANSWER(thrd_join(threads[i], NULL));
    ANSWER((int)count);
    cnd_destroy(&changed);
    mtx_destroy(&mutex);
    return 0;
}
