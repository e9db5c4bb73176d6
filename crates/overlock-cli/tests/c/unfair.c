// Threads that want a lock again as soon as they have released it, so that they take it past those
// that sleep for it.
#include <pthread.h>
#include <time.h>

static pthread_mutex_t wanted = PTHREAD_MUTEX_INITIALIZER;

static void spend(long microseconds)
{
	struct timespec start, now;
	clock_gettime(CLOCK_MONOTONIC, &start);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - start.tv_sec) * 1000000 + (now.tv_nsec - start.tv_nsec) / 1000 < microseconds);
}

__attribute__((noinline)) static void greedy(void)
{
	pthread_mutex_lock(&wanted);
	spend(200);
	pthread_mutex_unlock(&wanted);
}

static void *thread(void *unused)
{
	(void)unused;
	for (int i = 0; i < 300; i++)
		greedy();
	return NULL;
}

int main(void)
{
	pthread_t threads[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, thread, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
