// One lock is hot, one is not, one was initialised by a call, one is waited for in vain.
//   hot ROUNDS [stay]     with the second argument it does not end by itself
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t hot = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t own[3] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_mutex_t *made;
static long rounds;
static int hurrying = 2;

static void spend(long nanoseconds)
{
	struct timespec time = {0, nanoseconds};
	nanosleep(&time, NULL);
}

__attribute__((noinline)) static void long_section(void)
{
	pthread_mutex_lock(&hot);
	spend(1000000);
	pthread_mutex_unlock(&hot);
}

__attribute__((noinline)) static void short_section(void)
{
	pthread_mutex_lock(&hot);
	pthread_mutex_unlock(&hot);
}

__attribute__((noinline)) static void lonely_section(pthread_mutex_t *mutex)
{
	pthread_mutex_lock(mutex);
	pthread_mutex_unlock(mutex);
}

__attribute__((noinline)) static void make(void)
{
	pthread_mutexattr_t attr;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	made = malloc(sizeof *made);
	pthread_mutex_init(made, &attr);
}

__attribute__((noinline)) static int hurried_section(void)
{
	struct timespec soon;
	clock_gettime(CLOCK_REALTIME, &soon);
	return pthread_mutex_timedlock(made, &soon);
}

static void *thread(void *argument)
{
	long number = (long)argument;
	// The first makes the others wait: it sleeps in the section, until they have been through.
	for (int i = 0; i < 30 || (number == 0 && __atomic_load_n(&hurrying, __ATOMIC_RELAXED)); i++) {
		if (number == 0) {
			long_section();
		} else {
			spend(1000000);
			short_section();
		}
	}
	if (number != 0)
		__atomic_fetch_sub(&hurrying, 1, __ATOMIC_RELAXED);
	for (long i = 0; i < rounds; i++)
		lonely_section(&own[number]);
	if (number == 0)
		hurried_section();
	return NULL;
}

int main(int argc, char **argv)
{
	rounds = argc > 1 ? atol(argv[1]) : 0;
	make();
	pthread_mutex_lock(made);
	pthread_mutex_lock(made);
	pthread_t threads[3];
	for (long i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, thread, (void *)i);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	pthread_mutex_unlock(made);
	pthread_mutex_unlock(made);
	puts("ready");
	fflush(stdout);
	while (argc > 2)
		pause();
	return 7;
}
