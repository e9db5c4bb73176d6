/* The last owner of an object frees its memory while calls of earlier owners may not have returned:
 * none of them may access it any more. Arguments: number of threads, seconds (else one round). */
#include "check.h"

enum { ROUNDS = 4000, PAGE = 4096 };
static long threads_of_all = 6;

/* An object in a page of its own. */
struct page {
    union {
        pthread_mutex_t mutex;
        pthread_rwlock_t lock;
        pthread_spinlock_t spin;
        sem_t sem;
        pthread_barrier_t barrier;
    };
    pthread_cond_t cond;
    int references, ready;
    atomic_int inside;
};

/* Pages are used cyclically, so that an unmapped page stays unmapped for a while. */
static struct page *fresh(void)
{
    struct page *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    page->references = threads_of_all;
    return page;
}

/* Spends some time in a critical section, sometimes so much that waiters fall asleep. */
static void linger(void)
{
    static _Thread_local unsigned random = 1;
    random = random * 1664525 + 1013904223 + (unsigned)(long)&random;
    for (volatile unsigned turn = 0; turn < (random >> 16) % 64 * 200; turn++) {
    }
}

static void take_away(struct page *page)
{
    OK(munmap(page, PAGE));
}

/* Each thread uses each of the pages once. */
static struct page *pages[ROUNDS];
static pthread_barrier_t together;
static void (*part)(struct page *, long);

static void *take_part(void *number)
{
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 16 == 0) {
            pthread_barrier_wait(&together);
        }
        part(pages[round], (long)number);
    }
    return NULL;
}

static void each(const char *name, void (*what)(struct page *, long), void (*prepare)(struct page *))
{
    for (int round = 0; round < ROUNDS; round++) {
        pages[round] = fresh();
        prepare(pages[round]);
    }
    part = what;
    pthread_t threads[threads_of_all];
    for (long i = 0; i < threads_of_all; i++) {
        threads[i] = start(take_part, (void *)i);
    }
    for (int i = 0; i < threads_of_all; i++) {
        join(threads[i]);
    }
    if (threads_of_all == 6) {
        puts(name);
        fflush(stdout);
    }
}

static void nothing(struct page *page)
{
    (void)page;
}

static void make_spin(struct page *page)
{
    OK(pthread_spin_init(&page->spin, 0));
}

static void make_sem(struct page *page)
{
    OK(sem_init(&page->sem, 0, 0));
}

static void make_writers(struct page *page)
{
    pthread_rwlock_t new = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
    page->lock = new;
}

static void with_mutex(struct page *page, long number)
{
    (void)number;
    OK(pthread_mutex_lock(&page->mutex));
    int last = --page->references == 0;
    linger();
    OK(pthread_mutex_unlock(&page->mutex));
    if (last) {
        take_away(page);
    }
}

static void with_destroyed_mutex(struct page *page, long number)
{
    (void)number;
    OK(pthread_mutex_lock(&page->mutex));
    int last = --page->references == 0;
    OK(pthread_mutex_unlock(&page->mutex));
    if (last) {
        OK(pthread_mutex_destroy(&page->mutex));
        take_away(page);
    }
}

static void with_rwlock(struct page *page, long number)
{
    (void)number;
    OK(pthread_rwlock_wrlock(&page->lock));
    int last = --page->references == 0;
    linger();
    OK(pthread_rwlock_unlock(&page->lock));
    if (last) {
        take_away(page);
    }
}

/* The writer arrives while the readers hold the lock, and is the last owner. */
static void with_readers(struct page *page, long number)
{
    if (number != 0) {
        OK(pthread_rwlock_rdlock(&page->lock));
        page->inside++;
        linger();
        OK(pthread_rwlock_unlock(&page->lock));
        return;
    }
    while (page->inside != threads_of_all - 1) {
        sched_yield();
    }
    OK(pthread_rwlock_wrlock(&page->lock));
    OK(pthread_rwlock_unlock(&page->lock));
    take_away(page);
}

static void with_spin(struct page *page, long number)
{
    (void)number;
    OK(pthread_spin_lock(&page->spin));
    int last = --page->references == 0;
    OK(pthread_spin_unlock(&page->spin));
    if (last) {
        take_away(page);
    }
}

static void with_sem(struct page *page, long number)
{
    if (number != 0) {
        OK(sem_post(&page->sem));
        return;
    }
    for (int post = 1; post < threads_of_all; post++) {
        OK(sem_wait(&page->sem));
    }
    OK(sem_destroy(&page->sem));
    take_away(page);
}

static void make_barrier(struct page *page)
{
    OK(pthread_barrier_init(&page->barrier, NULL, (unsigned)threads_of_all));
}

/* The serial thread destroys the barrier, while the others may not have returned. */
static void with_barrier(struct page *page, long number)
{
    (void)number;
    if (pthread_barrier_wait(&page->barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
        OK(pthread_barrier_destroy(&page->barrier));
        take_away(page);
    }
}

static void with_cond(struct page *page, long number)
{
    OK(pthread_mutex_lock(&page->mutex));
    if (number == 0) {
        while (page->ready != threads_of_all - 1) {
            OK(pthread_cond_wait(&page->cond, &page->mutex));
        }
        OK(pthread_cond_destroy(&page->cond));
    } else {
        page->ready++;
        OK(number == 1 ? pthread_cond_signal(&page->cond) : pthread_cond_broadcast(&page->cond));
    }
    int last = --page->references == 0;
    OK(pthread_mutex_unlock(&page->mutex));
    if (last) {
        take_away(page);
    }
}

static void all(void)
{
    each("mutex", with_mutex, nothing);
    each("mutex, destroyed", with_destroyed_mutex, nothing);
    each("writers", with_rwlock, nothing);
    each("writers, preferred", with_rwlock, make_writers);
    each("readers and a writer", with_readers, nothing);
    each("readers and a writer, preferred", with_readers, make_writers);
    each("spinlock", with_spin, make_spin);
    each("semaphore", with_sem, make_sem);
    each("barrier", with_barrier, make_barrier);
    each("condition", with_cond, nothing);
}

int main(int count, char **words)
{
    if (count > 1) {
        threads_of_all = atol(words[1]);
    }
    OK(pthread_barrier_init(&together, NULL, (unsigned)threads_of_all));
    struct timespec end = in_ms(CLOCK_MONOTONIC, count > 2 ? 1000 * atol(words[2]) : 0);
    do {
        all();
    } while (!has_passed(CLOCK_MONOTONIC, &end));
    return 0;
}
