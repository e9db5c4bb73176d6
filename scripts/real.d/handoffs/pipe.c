// A process asks, its child answers, by pipes or by a pair of sockets: pipe pipe|socket SECONDS

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    const bool pipes = !strcmp(argv[1], "pipe");
    int sockets[2], there[2], back[2];
    if (pipes ? pipe(there) || pipe(back) : socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
        return 1;
    const double start = now(), end = start + atoi(argv[2]);
    const pid_t child = fork();
    if (child < 0)
        return 1;
    const int in = !pipes ? sockets[child == 0] : child ? back[0] : there[0];
    const int out = !pipes ? sockets[child == 0] : child ? there[1] : back[1];
    // Each process keeps its own ends, so that the other sees when it is over.
    close(!pipes ? sockets[child != 0] : child ? there[0] : there[1]);
    if (pipes)
        close(child ? back[1] : back[0]);
    unsigned char byte = 0;
    if (!child) {
        while (pipes ? read(in, &byte, 1) == 1 : recv(in, &byte, 1, 0) == 1)
            if (write(out, &byte, 1) != 1)
                _exit(1);
        _exit(0);
    }
    unsigned long trips = 0;
    while (now() < end) {
        unsigned char question = (unsigned char)trips;
        if (write(out, &question, 1) != 1 || (pipes ? read(in, &byte, 1) : recv(in, &byte, 1, 0)) != 1)
            return 1;
        if (byte != question) {
            printf("wrong: asked %d, answered %d\n", question, byte);
            return 1;
        }
        trips++;
    }
    const double took = now() - start;
    int status;
    close(out);
    if (waitpid(child, &status, 0) != child || status)
        return 1;
    printf("per second: %.0f\n", (double)trips / took);
    return 0;
}
