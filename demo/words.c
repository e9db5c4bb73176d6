// An index of words, as many programs have one: words THREADS SECONDS FILE...
//
// Each thread takes the next block of the text, splits it into words, and adds them to one table
// behind one mutex. At the end the table must hold every word that was added. The program knows
// nothing of overlock.

#include <ctype.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { BUCKETS = 1 << 15, BLOCK = 2048, WORD = 40 };

struct word {
    struct word *next;
    unsigned hash, length;
    unsigned long count;
    char text[WORD];
};

// A word where it stands in the text.
struct found {
    const char *text;
    unsigned hash, length;
};

struct worker {
    _Alignas(128) pthread_t thread;
    unsigned long blocks, words;
    long long longest_ns;
};

static pthread_mutex_t index_lock = PTHREAD_MUTEX_INITIALIZER;
static struct word *buckets[BUCKETS];

static char *text;
static size_t text_length;
static atomic_size_t next_block;
static atomic_bool stop;

static long long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void *or_die(void *memory) {
    if (!memory) {
        perror("words");
        exit(1);
    }
    return memory;
}

static int is_letter(char byte) {
    return isalnum((unsigned char)byte) || byte == '_';
}

// The words of a block, which may cut its first and its last one.
static int split(const char *at, const char *end, struct found *words) {
    int count = 0;
    while (at < end) {
        if (!is_letter(*at)) {
            at++;
            continue;
        }
        struct found *word = &words[count++];
        *word = (struct found){.text = at, .hash = 2166136261u};
        for (; at < end && is_letter(*at) && word->length < WORD; at++, word->length++)
            word->hash = (word->hash ^ (unsigned char)*at) * 16777619u;
    }
    return count;
}

static struct word *find(const struct found *word) {
    struct word *entry = buckets[word->hash % BUCKETS];
    while (entry && (entry->hash != word->hash || entry->length != word->length ||
                     memcmp(entry->text, word->text, word->length) != 0))
        entry = entry->next;
    return entry;
}

static void add(const struct found *word) {
    struct word *entry = find(word);
    if (!entry) {
        struct word **bucket = &buckets[word->hash % BUCKETS];
        entry = or_die(malloc(sizeof *entry));
        *entry = (struct word){.next = *bucket, .hash = word->hash, .length = word->length};
        memcpy(entry->text, word->text, word->length);
        *bucket = entry;
    }
    entry->count++;
}

static void add_block(struct worker *worker, const struct found *words, int count) {
    const long long start = now_ns();
    pthread_mutex_lock(&index_lock);
    const long long waited = now_ns() - start;
    for (int i = 0; i < count; i++)
        add(&words[i]);
    pthread_mutex_unlock(&index_lock);
    if (waited > worker->longest_ns)
        worker->longest_ns = waited;
}

static void *work(void *argument) {
    struct worker *worker = argument;
    struct found words[BLOCK];
    const size_t blocks = text_length / BLOCK;
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        const char *block = text + atomic_fetch_add(&next_block, 1) % blocks * BLOCK;
        const int count = split(block, block + BLOCK, words);
        add_block(worker, words, count);
        worker->words += (unsigned long)count;
        worker->blocks++;
    }
    return NULL;
}

static void read_file(const char *path) {
    enum { PART = 1 << 16 };
    FILE *file = or_die(fopen(path, "rb"));
    for (size_t got = 1; got; text_length += got) {
        text = or_die(realloc(text, text_length + PART));
        got = fread(text + text_length, 1, PART, file);
    }
    fclose(file);
}

static unsigned long words_in_index(void) {
    unsigned long words = 0;
    for (int i = 0; i < BUCKETS; i++)
        for (const struct word *entry = buckets[i]; entry; entry = entry->next)
            words += entry->count;
    return words;
}

int main(int argc, char **argv) {
    const int threads = argc > 3 ? atoi(argv[1]) : 0;
    const double seconds = argc > 3 ? atof(argv[2]) : 0;
    for (int i = 3; i < argc; i++)
        read_file(argv[i]);
    if (threads < 1 || seconds <= 0 || text_length < BLOCK) {
        fprintf(stderr, "usage: words THREADS SECONDS FILE...\n");
        return 2;
    }

    struct worker *workers = or_die(aligned_alloc(_Alignof(struct worker), threads * sizeof *workers));
    memset(workers, 0, threads * sizeof *workers);
    const long long start = now_ns();
    for (int i = 0; i < threads; i++)
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) {
            fprintf(stderr, "words: no thread can be started\n");
            return 1;
        }
    const time_t whole = (time_t)seconds;
    nanosleep(&(struct timespec){whole, (long)((seconds - whole) * 1e9)}, NULL);
    atomic_store(&stop, 1);

    unsigned long blocks = 0, words = 0;
    long long longest_ns = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        blocks += workers[i].blocks;
        words += workers[i].words;
        if (workers[i].longest_ns > longest_ns)
            longest_ns = workers[i].longest_ns;
    }
    const double took = (now_ns() - start) / 1e9;
    if (words_in_index() != words) {
        fprintf(stderr, "words: the index has lost words\n");
        return 1;
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    const double cpu = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
                       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    printf("rate %.0f longest_ms %.3f cpu_us %.3f cpu_s %.3f\n", blocks / took, longest_ns / 1e6, cpu * 1e6 / blocks, cpu);
}
