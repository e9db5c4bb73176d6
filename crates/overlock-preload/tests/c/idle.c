/* Blocked threads take no CPU time: 200 wait in each way for three seconds, and none of them
 * runs. */
#include "objects.h"

#include <sys/resource.h>

enum { EACH = 200 };

static void *waits(void *way)
{
    wait_by((enum way)(long)way);
    return NULL;
}

struct used {
    double cpu_s;
    long switches;
};

/* The CPU use of all threads but this one. This thread may be preempted between the two samples,
 * and that would count as a switch of another: then it samples again. */
static struct used used(void)
{
    struct rusage all, mine, later;
    do {
        getrusage(RUSAGE_THREAD, &mine);
        getrusage(RUSAGE_SELF, &all);
        getrusage(RUSAGE_THREAD, &later);
    } while (later.ru_nivcsw + later.ru_nvcsw != mine.ru_nivcsw + mine.ru_nvcsw);
    struct used used = {0, all.ru_nvcsw + all.ru_nivcsw - mine.ru_nvcsw - mine.ru_nivcsw};
    const struct timeval *times[] = {&all.ru_utime, &all.ru_stime, &mine.ru_utime, &mine.ru_stime};
    for (int i = 0; i < 4; ++i)
        used.cpu_s += (i < 2 ? 1 : -1) * (times[i]->tv_sec + times[i]->tv_usec / 1e6);
    return used;
}

int main(void)
{
    static pthread_t threads[WAYS * EACH];
    close_all(EACH);
    start_all(threads, WAYS, EACH, 65536, waits);
    /* On a busy machine they may take a while to block: once they have not run for a second, they
     * must not run. */
    struct used before = used(), now;
    for (int i = 0; i < 60; ++i) {
        sleep_ms(1000);
        now = used();
        if (now.switches == before.switches)
            break;
        before = now;
    }
    sleep_ms(3000);
    now = used();
    if (now.switches != before.switches || now.cpu_s - before.cpu_s > 0.003) {
        printf("%ld switches, %f s\n", now.switches - before.switches, now.cpu_s - before.cpu_s);
        return 1;
    }
    CHECK(spurious == 0);
    open_all();
    for (int i = 0; i < WAYS * EACH; ++i)
        join(threads[i]);
    puts("quiet");
    return 0;
}
