/* Waits in each way on a stack of the smallest size. With a first argument, also checks that no
 * lock takes more than that many bytes of it. A wait for a condition, a semaphore or a barrier may
 * take more, since it may look whether the machine has a CPU for a spinner. */
#include "objects.h"

enum { PAINTED = 8192, RED_ZONE = 256, LOOK = 768 };

static long most;

/* Calls `act` with known contents below its frame, and returns how many bytes of these it has
 * overwritten. */
__attribute__((noinline)) static long depth(void (*act)(void *), void *with)
{
    volatile unsigned char *base = __builtin_frame_address(0);
    volatile unsigned char *top = base - RED_ZONE;
    for (int i = 1; i <= PAINTED; ++i)
        top[-i] = 0xa5;
    act(with);
    for (int i = PAINTED; i > 0; --i)
        if (top[-i] != 0xa5)
            return i;
    return 0;
}

static void wait_as(void *way)
{
    wait_by((enum way)(long)way);
}

static void open_these(void *none)
{
    (void)none;
    open_all();
}

static void told(const char *what, long bytes)
{
    int looks = strstr(what, "cond") || strstr(what, "sem") || strstr(what, "barrier");
    long look = looks ? LOOK : 0;
    if (most != 0 && bytes >= most + look) {
        printf("%s: %ld bytes of stack\n", what, bytes);
        exit(1);
    }
}

static void *waits(void *way)
{
    /* The frames of the functions here. */
    long own = depth(wait_as, (void *)ALL_WAYS);
    told(way_names[(long)way], depth(wait_as, way) - own);
    return NULL;
}

int main(int count, char **arguments)
{
    (void)count;
    most = arguments[1] == NULL ? 0 : atol(arguments[1]);
    for (int round = 0; round < 3; ++round) {
        pthread_t threads[ALL_WAYS];
        close_all(1);
        start_all(threads, ALL_WAYS, 1, PTHREAD_STACK_MIN, waits);
        sleep_ms(200);
        told("releases", depth(open_these, NULL));
        for (int i = 0; i < ALL_WAYS; ++i)
            join(threads[i]);
    }
    puts("enough");
    return 0;
}
