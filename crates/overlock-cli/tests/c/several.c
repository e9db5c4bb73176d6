// Several processes make the same mistakes at the same time, in deep calls, so that their reports
// are long.

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES = 4, LOCKS = 8 };

static pthread_mutex_t locks[LOCKS];

static void deep(int depth, int first, int second) {
    if (depth > 0) {
        deep(depth - 1, first, second);
        __asm__ volatile("");
        return;
    }
    pthread_mutex_lock(&locks[first]);
    pthread_mutex_lock(&locks[second]);
    pthread_mutex_unlock(&locks[second]);
    pthread_mutex_unlock(&locks[first]);
}

int main(void) {
    int go[2];
    if (pipe(go))
        return 1;
    for (int i = 0; i < PROCESSES; i++)
        if (fork() == 0) {
            char byte;
            close(go[1]);
            if (read(go[0], &byte, 1))
                return 1;
            for (int lock = 0; lock + 1 < LOCKS; lock++) {
                deep(12, lock, lock + 1);
                deep(12, lock + 1, lock);
            }
            _exit(0);
        }
    // All begin together.
    close(go[1]);
    while (wait(NULL) > 0)
        ;
    return 0;
}
