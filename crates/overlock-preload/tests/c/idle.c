/* Blocked threads take no CPU time: 200 wait in each way, and there are three seconds in which none
 * of them runs. */
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

static double cpu_s(const struct rusage *of)
{
    return of->ru_utime.tv_sec + of->ru_stime.tv_sec + (of->ru_utime.tv_usec + of->ru_stime.tv_usec) / 1e6;
}

/* The CPU use of all threads but this one. This thread or the machine may stop between the two
 * samples, and that would count as another's: then it samples again. */
static struct used used(void)
{
    struct rusage all, mine, later;
    do {
        getrusage(RUSAGE_THREAD, &mine);
        getrusage(RUSAGE_SELF, &all);
        getrusage(RUSAGE_THREAD, &later);
    } while (later.ru_nivcsw + later.ru_nvcsw != mine.ru_nivcsw + mine.ru_nvcsw || cpu_s(&later) > cpu_s(&mine) + 0.001);
    return (struct used){cpu_s(&all) - cpu_s(&mine), all.ru_nvcsw + all.ru_nivcsw - mine.ru_nvcsw - mine.ru_nivcsw};
}

int main(void)
{
    static pthread_t threads[WAYS * EACH];
    close_all(EACH);
    start_all(threads, WAYS, EACH, 65536, waits);
    /* On a busy machine they take a while to block. */
    struct used before, now;
    for (int i = 0;; ++i) {
        before = used();
        sleep_ms(3000);
        now = used();
        if (now.switches == before.switches && now.cpu_s - before.cpu_s <= 0.003)
            break;
        if (i == 40) {
            printf("%ld switches, %f s\n", now.switches - before.switches, now.cpu_s - before.cpu_s);
            return 1;
        }
    }
    CHECK(spurious == 0);
    open_all();
    for (int i = 0; i < WAYS * EACH; ++i)
        join(threads[i]);
    puts("quiet");
    return 0;
}
