// A consumer waits for a condition whose producer holds the mutex for a moment. Its wake-up takes
// long, since others have the CPU; nobody else wants the mutex.
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static int items, is_over;
static volatile int stops;

static void *burn(void *unused)
{
	while (!stops)
		;
	return unused;
}

__attribute__((noinline)) static void *consume(void *unused)
{
	pthread_mutex_lock(&mutex);
	while (!is_over) {
		while (!items && !is_over)
			pthread_cond_wait(&filled, &mutex);
		items = 0;
	}
	pthread_mutex_unlock(&mutex);
	return unused;
}

int main(void)
{
	pthread_t burners[2], consumer;
	for (int i = 0; i < 2; i++)
		pthread_create(&burners[i], NULL, burn, NULL);
	pthread_create(&consumer, NULL, consume, NULL);
	for (int i = 0; i < 50; i++) {
		usleep(5000);
		pthread_mutex_lock(&mutex);
		items = 1;
		is_over = i == 49;
		pthread_cond_signal(&filled);
		pthread_mutex_unlock(&mutex);
	}
	pthread_join(consumer, NULL);
	stops = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(burners[i], NULL);
	return 0;
}
