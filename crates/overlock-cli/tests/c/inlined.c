// Two functions that the compiler inlines use a lock: one keeps it for long, the other waits for
// it. `m` and `t` are types in C++'s mangling.
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

__attribute__((always_inline)) static inline void lookup(void)
{
	pthread_mutex_lock(&m);
	pthread_mutex_unlock(&m);
}

__attribute__((always_inline)) static inline void flush(void)
{
	pthread_mutex_lock(&m);
	usleep(2000);
	pthread_mutex_unlock(&m);
}

static int over;

// Each goes on until both have been there often: one may be late.
__attribute__((noinline)) void *t(void *a)
{
	for (int i = 0; i < 20 || __atomic_load_n(&over, __ATOMIC_RELAXED) < 2; i++) {
		lookup();
		flush();
		if (i == 19)
			__atomic_fetch_add(&over, 1, __ATOMIC_RELAXED);
	}
	return a;
}

int main(void)
{
	pthread_t threads[2];
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, t, NULL) != 0)
			return 1;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}
