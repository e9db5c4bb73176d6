// Waits for events, some of them in vain, and one for a spinlock.
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "asleep.h"

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

// How often the calling thread has slept.
static long sleeps(void)
{
	struct rusage usage;
	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

// Where the machine stops meanwhile, it is over before the caller waits.
static struct timespec soon(void)
{
	struct timespec time;
	clock_gettime(CLOCK_REALTIME, &time);
	time.tv_nsec += 200000000;
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
	long before;
	pthread_mutex_lock(&mutex);
	do {
		before = sleeps();
		struct timespec at = soon();
		while (pthread_cond_timedwait(&ready, &mutex, &at) != ETIMEDOUT)
			;
	} while (sleeps() == before);
	pthread_mutex_unlock(&mutex);
}

__attribute__((noinline)) static void take_slot(void)
{
	while (sem_wait(&slots) != 0)
		;
}

__attribute__((noinline)) static void take_in_vain(void)
{
	long before;
	do {
		before = sleeps();
		struct timespec at = soon();
		while (sem_timedwait(&slots, &at) != 0 && errno != ETIMEDOUT)
			;
	} while (sleeps() == before);
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

static volatile pid_t id;
static clockid_t cpu_clock;
static volatile enum stage { READY, SLOT, QUICK, MEETING } stage;

static void *other(void *unused)
{
	(void)unused;
	pthread_getcpuclockid(pthread_self(), &cpu_clock);
	id = (pid_t)syscall(SYS_gettid);
	await_ready();
	stage = SLOT;
	take_slot();
	stage = QUICK;
	want_quick();
	stage = MEETING;
	meet();
	return NULL;
}

static long other_ran_ms(void)
{
	struct timespec time;
	clock_gettime(cpu_clock, &time);
	return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

// Until the other thread waits, for long. For a spinlock it may wait awake.
static void await(enum stage next)
{
	while (stage != next)
		spend(1);
	long before = other_ran_ms();
	while (!is_asleep(id) && (next != QUICK || other_ran_ms() < before + 20))
		spend(1);
	spend(100);
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
	await(SLOT);
	sem_post(&slots);
	await(QUICK);
	pthread_spin_unlock(&quick);
	await(MEETING);
	meet();
	pthread_join(thread, NULL);
	return 0;
}
