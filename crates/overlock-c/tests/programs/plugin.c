/* A library that a program loads and closes, with the locks linked into it. */
#include <overlock.h>
#include <time.h>

static ovl_mutex_t lock = OVL_MUTEX_INIT;
static ovl_cond_t cond = OVL_COND_INIT;

int work(void);

/* The calling thread waits, so that the library has to notice its end. */
int work(void) {
    struct timespec soon;
    clock_gettime(CLOCK_MONOTONIC, &soon);
    ovl_mutex_lock(&lock);
    int late = ovl_cond_timedwait(&cond, &lock, &soon);
    ovl_mutex_unlock(&lock);
    return late;
}
