// Prints the CPU time of a lock and an unlock that nobody else wants, in nanoseconds.
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile long counter;

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return time.tv_sec * 1e9 + time.tv_nsec;
}

int main(void)
{
	const long rounds = 1000000;
	double start = now();
	for (long i = 0; i < rounds; i++) {
		pthread_mutex_lock(&mutex);
		counter++;
		pthread_mutex_unlock(&mutex);
	}
	printf("%.3f\n", (now() - start) / rounds);
	return 0;
}
