// A lock that was initialised by a call is gone, and its memory holds one that was not.
//   reborn mutex|rwlock freed|destroyed
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "asleep.h"

union lock {
	pthread_mutex_t mutex;
	pthread_rwlock_t rwlock;
};

static union lock *lock;
static int is_mutex;
static volatile pid_t waiter;

__attribute__((noinline)) static void makes(void)
{
	is_mutex ? pthread_mutex_init(&lock->mutex, NULL) : pthread_rwlock_init(&lock->rwlock, NULL);
	__asm__ volatile("");
}

// No function: the callers name the rows.
#define TAKE() (is_mutex ? pthread_mutex_lock(&lock->mutex) : pthread_rwlock_wrlock(&lock->rwlock))

static void leave(void)
{
	is_mutex ? pthread_mutex_unlock(&lock->mutex) : pthread_rwlock_unlock(&lock->rwlock);
}

static void *waits_for_first(void *unused)
{
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
	leave();
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 1;
	is_mutex = !strcmp(argv[1], "mutex");
	lock = malloc(sizeof *lock);
	makes();
	contend(waits_for_first);
	if (!strcmp(argv[2], "destroyed"))
		is_mutex ? pthread_mutex_destroy(&lock->mutex) : pthread_rwlock_destroy(&lock->rwlock);
	union lock *first = lock;
	free(lock);
	lock = malloc(sizeof *lock);
	if (lock != first)
		return 2;
	if (is_mutex)
		lock->mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	else
		lock->rwlock = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
	contend(waits_for_second);
	return 0;
}
