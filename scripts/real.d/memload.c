// Asks memcached, and checks what it answers: memload SOCKET THREADS CONNECTIONS SECONDS
//
// CONNECTIONS for each of the threads, each with 32 requests at a time: of 32, 28 read, 3 write,
// and one counts. A value tells its key and its version, again and again: one that is torn shows.
// At the end the server must have counted what was asked.

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { KEYS = 20000, BATCH = 32, PIECE = 18, PIECES = 8, VALUE = PIECE * PIECES };

static const char *path;
static int connections, seconds;

struct connection {
    int fd;
    size_t begin, end;
    char in[65536];
    int keys[BATCH]; // for what is read; -1 for what is written, -2 for what is counted
};

struct thread {
    pthread_t id;
    unsigned seed;
    unsigned long reads, writes, counts;
};

static void wrong(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("wrong: ", stdout);
    vprintf(format, arguments);
    putchar('\n');
    fflush(stdout);
    exit(1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void dial(struct connection *c) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    c->fd = socket(AF_UNIX, SOCK_STREAM, 0);
    c->begin = c->end = 0;
    // The server's backlog may be full for a moment.
    while (connect(c->fd, (struct sockaddr *)&address, sizeof address)) {
        if (errno != EAGAIN)
            wrong("no connection: %s", strerror(errno));
        usleep(1000);
    }
}

static void say(struct connection *c, const char *text, size_t length) {
    while (length) {
        ssize_t n = write(c->fd, text, length);
        if (n <= 0)
            wrong("no answer: %s", strerror(errno));
        text += n, length -= n;
    }
}

static void fill(struct connection *c) {
    if (c->begin) {
        memmove(c->in, c->in + c->begin, c->end - c->begin);
        c->end -= c->begin, c->begin = 0;
    }
    ssize_t n = read(c->fd, c->in + c->end, sizeof c->in - c->end);
    if (n <= 0)
        wrong("the server hung up: %s", n ? strerror(errno) : "end");
    c->end += n;
}

// The next line, without its end; it is there until the next call.
static char *hear(struct connection *c) {
    size_t seen = 0;
    for (;;) {
        char *end = memchr(c->in + c->begin + seen, '\n', c->end - c->begin - seen);
        if (end && end > c->in) {
            char *line = c->in + c->begin;
            c->begin = end + 1 - c->in;
            end[-1] = 0;
            return line;
        }
        seen = c->end - c->begin;
        fill(c);
    }
}

static void value(char *to, int key, unsigned version) {
    for (int i = 0; i < PIECES; i++)
        sprintf(to + i * PIECE, "%08d %08x ", key, version);
}

static int store(char *to, int key, unsigned version) {
    int n = sprintf(to, "set key%d 0 0 %d\r\n", key, VALUE);
    value(to + n, key, version);
    n += VALUE;
    return n + sprintf(to + n, "\r\n");
}

static void stored(struct connection *c) {
    char *line = hear(c);
    if (strcmp(line, "STORED"))
        wrong("written: %s", line);
}

static void *work(void *argument) {
    struct thread *t = argument;
    struct connection *all = calloc(connections, sizeof *all);
    char out[BATCH * (VALUE + 64)];
    for (int i = 0; i < connections; i++)
        dial(&all[i]);
    for (double end = now() + seconds; now() < end;) {
        for (int i = 0; i < connections; i++) {
            struct connection *c = &all[i];
            size_t n = 0;
            for (int r = 0; r < BATCH; r++) {
                int key = rand_r(&t->seed) % KEYS;
                if (r == 0) {
                    n += sprintf(out + n, "incr count 1\r\n");
                    t->counts++, c->keys[r] = -2;
                } else if (r % 10 == 1 && r < 30) {
                    n += store(out + n, key, rand_r(&t->seed));
                    t->writes++, c->keys[r] = -1;
                } else {
                    n += sprintf(out + n, "get key%d\r\n", key);
                    t->reads++, c->keys[r] = key;
                }
            }
            say(c, out, n);
        }
        for (int i = 0; i < connections; i++) {
            struct connection *c = &all[i];
            unsigned long before = 0;
            for (int r = 0; r < BATCH; r++) {
                if (c->keys[r] == -1) {
                    stored(c);
                    continue;
                }
                char *line = hear(c);
                if (c->keys[r] == -2) {
                    unsigned long count = strtoul(line, NULL, 10);
                    if (count <= before)
                        wrong("counted: %s, after %lu", line, before);
                    before = count;
                    continue;
                }
                char head[64], expected[VALUE + 1];
                sprintf(head, "VALUE key%d 0 %d", c->keys[r], VALUE);
                if (strcmp(line, head))
                    wrong("read: %s, not %s", line, head);
                line = hear(c);
                value(expected, c->keys[r], strtoul(line + 9, NULL, 16));
                if (strcmp(line, expected))
                    wrong("read: %s, not %s", line, expected);
                line = hear(c);
                if (strcmp(line, "END"))
                    wrong("after a value: %s", line);
            }
        }
    }
    for (int i = 0; i < connections; i++)
        close(all[i].fd);
    free(all);
    return NULL;
}

static void counted(struct connection *c, const char *name, unsigned long expected) {
    say(c, "stats\r\n", 7);
    unsigned long found = -1;
    for (char *line; strcmp(line = hear(c), "END");) {
        size_t n = strlen(name);
        if (!strncmp(line, "STAT ", 5) && !strncmp(line + 5, name, n) && line[5 + n] == ' ')
            found = strtoul(line + 6 + n, NULL, 10);
    }
    if (found != expected)
        wrong("%s is %lu, and %lu were asked", name, found, expected);
}

int main(int argc, char **argv) {
    if (argc != 5)
        return 2;
    path = argv[1];
    int threads = atoi(argv[2]);
    connections = atoi(argv[3]);
    seconds = atoi(argv[4]);
    static struct connection c;
    dial(&c);
    char out[VALUE + 64];
    for (int key = 0; key < KEYS; key++) {
        say(&c, out, store(out, key, 0));
        stored(&c);
    }
    say(&c, "set count 0 0 1\r\n0\r\n", 20);
    stored(&c);

    struct thread all[threads];
    double start = now();
    for (int i = 0; i < threads; i++) {
        all[i] = (struct thread){.seed = i + 1};
        pthread_create(&all[i].id, NULL, work, &all[i]);
    }
    unsigned long reads = 0, writes = 0, counts = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(all[i].id, NULL);
        reads += all[i].reads, writes += all[i].writes, counts += all[i].counts;
    }
    double took = now() - start;
    counted(&c, "cmd_get", reads);
    counted(&c, "get_hits", reads);
    counted(&c, "cmd_set", writes + KEYS + 1);
    counted(&c, "incr_hits", counts);
    say(&c, "get count\r\n", 11);
    hear(&c);
    char *line = hear(&c);
    if (strtoul(line, NULL, 10) != counts)
        wrong("the count is %s, and was to be %lu", line, counts);
    printf("requests per second: %.0f\n", (reads + writes + counts) / took);
}
