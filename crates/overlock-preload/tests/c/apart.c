/* Shares objects of each kind with a plugin, which is loaded as the second argument says, or with
 * functions of a handle: all must see the same owner. */
#include "check.h"

enum { TIMES = 5000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t spin;
static sem_t sem;
static int flag;

const char *whose(void)
{
    return "the host's";
}

typedef int (*step)(void *);
typedef void (*repeats)(void *it, long *count, int times);

struct kind {
    const char *name;
    void *it;
    step lock, unlock;
    repeats plugin;
    step other_lock, other_unlock;
    long count;
};

static void *host(void *with)
{
    struct kind *kind = with;
    for (int i = 0; i < TIMES; i++) {
        OK(kind->lock(kind->it));
        kind->count++;
        OK(kind->unlock(kind->it));
    }
    return NULL;
}

static void *plugin(void *with)
{
    struct kind *kind = with;
    if (kind->plugin != NULL) {
        kind->plugin(kind->it, &kind->count, TIMES);
        return NULL;
    }
    for (int i = 0; i < TIMES; i++) {
        OK(kind->other_lock(kind->it));
        kind->count++;
        OK(kind->other_unlock(kind->it));
    }
    return NULL;
}

static void (*plugin_signals)(pthread_mutex_t *, pthread_cond_t *, int *);

static void *signals(void *with)
{
    sleep_ms(20);
    plugin_signals(&mutex, &cond, &flag);
    return with;
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    const char *how = argv[2];
    OK(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE));
    OK(sem_init(&sem, 0, 1));
    void *libc = NULL, *loaded = NULL;
    if (strcmp(how, "handle") == 0) {
        libc = dlopen("libc.so.6", RTLD_NOW);
        CHECK(libc != NULL);
    } else if (strcmp(how, "apart") == 0) {
        loaded = dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW);
    } else if (strcmp(how, "lazy") == 0) {
        loaded = dlmopen(LM_ID_NEWLM, argv[1], RTLD_LAZY);
    } else if (strcmp(how, "searched") == 0) {
        const char *name = strrchr(argv[1], '/');
        CHECK(name != NULL);
        loaded = dlmopen(LM_ID_NEWLM, name + 1, RTLD_LAZY);
    } else {
        loaded = dlopen(argv[1], RTLD_NOW | (strcmp(how, "deep") == 0 ? RTLD_DEEPBIND : 0));
    }
    if (libc == NULL && loaded == NULL) {
        puts(dlerror());
        return 1;
    }
#define KIND(name, at, a, b)                                                               \
    {name, at, (step)a, (step)b, (repeats)dlsym(loaded, "plugin_" name), NULL, NULL, 0}
    struct kind kinds[] = {
        KIND("mutex", &mutex, pthread_mutex_lock, pthread_mutex_unlock),
        KIND("rwlock", &rwlock, pthread_rwlock_wrlock, pthread_rwlock_unlock),
        KIND("spin", (void *)&spin, pthread_spin_lock, pthread_spin_unlock),
        KIND("sem", &sem, sem_wait, sem_post),
    };
    if (libc != NULL) {
        const char *names[][2] = {
            {"pthread_mutex_lock", "pthread_mutex_unlock"},
            {"pthread_rwlock_wrlock", "pthread_rwlock_unlock"},
            {"pthread_spin_lock", "pthread_spin_unlock"},
            {"sem_wait", "sem_post"},
        };
        for (int i = 0; i < 4; i++) {
            kinds[i].plugin = NULL;
            kinds[i].other_lock = (step)dlsym(libc, names[i][0]);
            kinds[i].other_unlock = (step)dlsym(libc, names[i][1]);
        }
    }
    for (int i = 0; i < 4; i++) {
        pthread_t threads[4];
        for (int j = 0; j < 4; j++) {
            threads[j] = start(j % 2 == 0 ? host : plugin, &kinds[i]);
        }
        for (int j = 0; j < 4; j++) {
            join(threads[j]);
        }
        printf("%s: %ld of %d\n", kinds[i].name, kinds[i].count, 4 * TIMES);
    }
    if (loaded != NULL) {
        *(void **)&plugin_signals = dlsym(loaded, "plugin_signals");
        pthread_t thread = start(signals, NULL);
        OK(pthread_mutex_lock(&mutex));
        while (!flag) {
            OK(pthread_cond_wait(&cond, &mutex));
        }
        OK(pthread_mutex_unlock(&mutex));
        join(thread);
        const char *(*asks)(void) = (const char *(*)(void))dlsym(loaded, "asks");
        const char *(*indexes)(void) = (const char *(*)(void))dlsym(loaded, "indexes");
        int (*key_is_new)(void) = (int (*)(void))dlsym(loaded, "plugin_key_is_new");
        int (*ends)(void) = (int (*)(void))dlsym(loaded, "plugin_ends");
        printf("%s, %s\n", asks(), indexes());
        printf("%d, %d\n", key_is_new(), ends == NULL ? 0 : ends());
    }
    return 0;
}
