// A lock of a condition and one of a semaphore, as interpreters make them; then a queue of events.
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t freed = PTHREAD_COND_INITIALIZER;
static sem_t baton, events;
static int is_taken;
static int begun;

__attribute__((noinline)) static void interpret(void)
{
	pthread_mutex_lock(&mutex);
	while (is_taken)
		pthread_cond_wait(&freed, &mutex);
	is_taken = 1;
	pthread_mutex_unlock(&mutex);
	usleep(500);
	pthread_mutex_lock(&mutex);
	is_taken = 0;
	pthread_cond_signal(&freed);
	pthread_mutex_unlock(&mutex);
}

__attribute__((noinline)) static void carry(void)
{
	sem_wait(&baton);
	usleep(500);
	sem_post(&baton);
}

static void *work(void *unused)
{
	// All at the same time.
	__atomic_fetch_add(&begun, 1, __ATOMIC_RELAXED);
	while (__atomic_load_n(&begun, __ATOMIC_RELAXED) < 3)
		usleep(200);
	for (int i = 0; i < 40; i++) {
		interpret();
		usleep(200);
	}
	for (int i = 0; i < 40; i++) {
		carry();
		usleep(200);
	}
	return unused;
}

static void *await(void *unused)
{
	for (int i = 0; i < 40; i++)
		sem_wait(&events);
	return unused;
}

int main(void)
{
	pthread_t threads[4];
	sem_init(&baton, 0, 1);
	sem_init(&events, 0, 0);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	pthread_create(&threads[3], NULL, await, NULL);
	for (int i = 0; i < 40; i++) {
		usleep(1000);
		sem_post(&events);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
