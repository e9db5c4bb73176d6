// A thread asks, another answers, by two conditions of one mutex: pthread SECONDS

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t asked = PTHREAD_COND_INITIALIZER;
static pthread_cond_t answered = PTHREAD_COND_INITIALIZER;
static bool question, over;
static unsigned long answers;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void *answer(void *unused) {
    (void)unused;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!question && !over)
            pthread_cond_wait(&asked, &lock);
        if (over)
            break;
        question = false;
        answers++;
        pthread_cond_signal(&answered);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    const double start = now(), end = start + atoi(argv[1]);
    pthread_t thread;
    if (pthread_create(&thread, NULL, answer, NULL))
        return 1;
    unsigned long questions = 0;
    pthread_mutex_lock(&lock);
    while (now() < end) {
        question = true;
        questions++;
        pthread_cond_signal(&asked);
        while (question)
            pthread_cond_wait(&answered, &lock);
    }
    const double took = now() - start;
    over = true;
    pthread_cond_signal(&asked);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    if (answers != questions) {
        printf("wrong: %lu questions, %lu answers\n", questions, answers);
        return 1;
    }
    printf("per second: %.0f\n", questions / took);
    return 0;
}
