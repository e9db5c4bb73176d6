/* Helpers of the test programs. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Ends the program with a message if the condition does not hold. */
#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            exit(1); \
        } \
    } while (0)

static inline long long now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (long long)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* The moment so many milliseconds from now. */
static inline struct timespec later(int milliseconds) {
    long long at = now_ns() + milliseconds * 1000000LL;
    struct timespec time;
    time.tv_sec = (time_t)(at / 1000000000);
    time.tv_nsec = (long)(at % 1000000000);
    return time;
}

#endif
