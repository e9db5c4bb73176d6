// An object that was initialised by a call is gone, and its memory holds a lock that was not.
//   reborn mutex|rwlock|cond|sem mutex|rwlock freed|destroyed
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "asleep.h"

union lock {
	pthread_mutex_t mutex;
	pthread_rwlock_t rwlock;
	pthread_cond_t cond;
	sem_t sem;
};

static union lock *lock;
// The first letter of what it is.
static char kind;
static pthread_mutex_t beside = PTHREAD_MUTEX_INITIALIZER;
static volatile pid_t waiter;

__attribute__((noinline)) static void makes(void)
{
	if (kind == 'm')
		pthread_mutex_init(&lock->mutex, NULL);
	else if (kind == 'r')
		pthread_rwlock_init(&lock->rwlock, NULL);
	else if (kind == 'c')
		pthread_cond_init(&lock->cond, NULL);
	else
		sem_init(&lock->sem, 0, 1);
	__asm__ volatile("");
}

static void destroys(void)
{
	if (kind == 'm')
		pthread_mutex_destroy(&lock->mutex);
	else if (kind == 'r')
		pthread_rwlock_destroy(&lock->rwlock);
	else if (kind == 'c')
		pthread_cond_destroy(&lock->cond);
	else
		sem_destroy(&lock->sem);
}

// No function: the callers name the rows.
#define TAKE() (kind == 'm' ? pthread_mutex_lock(&lock->mutex) : kind == 'r' ? pthread_rwlock_wrlock(&lock->rwlock) : kind == 's' ? sem_wait(&lock->sem) : 0)

static void leave(void)
{
	if (kind == 'm')
		pthread_mutex_unlock(&lock->mutex);
	else if (kind == 'r')
		pthread_rwlock_unlock(&lock->rwlock);
	else if (kind == 's')
		sem_post(&lock->sem);
}

static void wakes(void)
{
	pthread_mutex_lock(&beside);
	pthread_cond_signal(&lock->cond);
	pthread_mutex_unlock(&beside);
}

static void *waits_for_first(void *unused)
{
	if (kind == 'c') {
		pthread_mutex_lock(&beside);
		// It is signalled with the mutex held: in the wait.
		waiter = (pid_t)syscall(SYS_gettid);
		pthread_cond_wait(&lock->cond, &beside);
		pthread_mutex_unlock(&beside);
		return unused;
	}
	waiter = (pid_t)syscall(SYS_gettid);
	TAKE();
	leave();
	return unused;
}

static void *waits_for_second(void *unused)
{
	waiter = (pid_t)syscall(SYS_gettid);
	TAKE();
	leave();
	return unused;
}

static void contend(void *(*waits)(void *))
{
	pthread_t thread;
	waiter = 0;
	TAKE();
	pthread_create(&thread, NULL, waits, NULL);
	while (!waiter || !is_asleep(waiter))
		usleep(1000);
	kind == 'c' ? wakes() : leave();
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 1;
	kind = argv[1][0];
	lock = malloc(sizeof *lock);
	makes();
	contend(waits_for_first);
	if (!strcmp(argv[3], "destroyed"))
		destroys();
	uintptr_t first = (uintptr_t)lock;
	free(lock);
	lock = malloc(sizeof *lock);
	if ((uintptr_t)lock != first)
		return 2;
	kind = argv[2][0];
	if (kind == 'm')
		lock->mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	else
		lock->rwlock = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
	contend(waits_for_second);
	return 0;
}
