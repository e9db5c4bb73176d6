// Prints the CPU time of a lock and an unlock that nobody else wants, in nanoseconds.
//   uncontended mutex | read | write
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static volatile long counter;

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return time.tv_sec * 1e9 + time.tv_nsec;
}

#define MEASURE(lock, unlock) \
	for (long i = 0; i < rounds; i++) { \
		lock; \
		counter++; \
		unlock; \
	}

int main(int argc, char **argv)
{
	const long rounds = 1000000;
	const char what = argc > 1 ? argv[1][0] : 'm';
	double start = now();
	if (what == 'r')
		MEASURE(pthread_rwlock_rdlock(&rwlock), pthread_rwlock_unlock(&rwlock))
	else if (what == 'w')
		MEASURE(pthread_rwlock_wrlock(&rwlock), pthread_rwlock_unlock(&rwlock))
	else
		MEASURE(pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex))
	printf("%.3f\n", (now() - start) / rounds);
	return 0;
}
