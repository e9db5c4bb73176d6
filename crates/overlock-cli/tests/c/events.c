// Waits for events, some of them in vain, and one for a spinlock.
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static int is_awaited, is_ready;
static sem_t slots;
static pthread_barrier_t meeting;
static pthread_spinlock_t quick;

static void spend(long milliseconds)
{
	struct timespec time = {0, milliseconds * 1000000};
	nanosleep(&time, NULL);
}

static struct timespec soon(void)
{
	struct timespec time;
	clock_gettime(CLOCK_REALTIME, &time);
	time.tv_nsec += 5000000;
	time.tv_sec += time.tv_nsec / 1000000000;
	time.tv_nsec %= 1000000000;
	return time;
}

__attribute__((noinline)) static void await_ready(void)
{
	pthread_mutex_lock(&mutex);
	is_awaited = 1;
	while (!is_ready)
		pthread_cond_wait(&ready, &mutex);
	pthread_mutex_unlock(&mutex);
}

__attribute__((noinline)) static void await_in_vain(void)
{
	struct timespec at = soon();
	pthread_mutex_lock(&mutex);
	while (pthread_cond_timedwait(&ready, &mutex, &at) != ETIMEDOUT)
		;
	pthread_mutex_unlock(&mutex);
}

__attribute__((noinline)) static void take_slot(void)
{
	while (sem_wait(&slots) != 0)
		;
}

__attribute__((noinline)) static void take_in_vain(void)
{
	struct timespec at = soon();
	while (sem_timedwait(&slots, &at) != 0 && errno != ETIMEDOUT)
		;
}

__attribute__((noinline)) static void meet(void)
{
	pthread_barrier_wait(&meeting);
}

__attribute__((noinline)) static void want_quick(void)
{
	pthread_spin_lock(&quick);
	pthread_spin_unlock(&quick);
}

static void *other(void *unused)
{
	(void)unused;
	await_ready();
	take_slot();
	want_quick();
	meet();
	return NULL;
}

int main(void)
{
	pthread_t thread;
	sem_init(&slots, 0, 0);
	pthread_barrier_init(&meeting, NULL, 2);
	pthread_spin_init(&quick, PTHREAD_PROCESS_PRIVATE);
	await_in_vain();
	take_in_vain();
	// There are enough: this does not wait.
	sem_post(&slots);
	take_slot();
	pthread_spin_lock(&quick);
	pthread_create(&thread, NULL, other, NULL);
	for (int awaited = 0; !awaited;) {
		spend(50);
		pthread_mutex_lock(&mutex);
		awaited = is_awaited;
		pthread_mutex_unlock(&mutex);
	}
	spend(10);
	pthread_mutex_lock(&mutex);
	is_ready = 1;
	pthread_cond_signal(&ready);
	pthread_mutex_unlock(&mutex);
	spend(100);
	sem_post(&slots);
	spend(100);
	pthread_spin_unlock(&quick);
	spend(100);
	meet();
	pthread_join(thread, NULL);
	return 0;
}
