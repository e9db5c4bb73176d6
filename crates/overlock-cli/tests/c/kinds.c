// Locks that functions of the program's own take, of three kinds; equal locks on the heap; and with
// an argument locks that stay the C library's.
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { EQUAL = 200 };
static pthread_mutex_t plain, recursive, checking, *equal;

__attribute__((noinline)) static void lock_init(pthread_mutex_t *mutex, int kind)
{
	pthread_mutexattr_t attributes;
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, kind);
	pthread_mutex_init(mutex, &attributes);
	__asm__ volatile("");
}

__attribute__((noinline)) static void lock_take(pthread_mutex_t *mutex)
{
	pthread_mutex_lock(mutex);
	__asm__ volatile("");
}

__attribute__((noinline)) static void keep(pthread_mutex_t *mutex)
{
	lock_take(mutex);
	usleep(2000);
	pthread_mutex_unlock(mutex);
}

__attribute__((noinline)) static void touch(pthread_mutex_t *mutex)
{
	lock_take(mutex);
	pthread_mutex_unlock(mutex);
}

__attribute__((noinline)) static void serve(pthread_mutex_t *mutex)
{
	lock_take(mutex);
	usleep(50);
	pthread_mutex_unlock(mutex);
}

__attribute__((noinline)) static void visit(pthread_mutex_t *mutex)
{
	lock_take(mutex);
	pthread_mutex_unlock(mutex);
}

static volatile int is_quick_over;

static void *slow(void *unused)
{
	for (int i = 0; i < 15 || !is_quick_over; i++) {
		keep(&plain);
		keep(&recursive);
		keep(&checking);
	}
	return unused;
}

static void *quick(void *unused)
{
	for (int i = 0; i < 60; i++) {
		touch(&plain);
		touch(&recursive);
		touch(&checking);
		usleep(200);
	}
	is_quick_over = 1;
	return unused;
}

static volatile int is_served, visits;

static void *serve_all(void *unused)
{
	do
		for (int i = 0; i < EQUAL; i++)
			serve(&equal[i]);
	while (visits < 3);
	is_served = 1;
	return unused;
}

// Meets the other thread in each round.
static void *visit_all(void *unused)
{
	while (!is_served) {
		for (int i = 0; i < EQUAL; i++)
			visit(&equal[i]);
		visits++;
	}
	return unused;
}

static void run(void *(*one)(void *), void *(*other)(void *))
{
	pthread_t threads[2];
	pthread_create(&threads[0], NULL, one, NULL);
	pthread_create(&threads[1], NULL, other, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

__attribute__((noinline)) static void bind(void)
{
	static pthread_mutex_t bound;
	pthread_mutexattr_t attributes;
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&bound, &attributes);
	pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_NONE);
	pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&bound, &attributes);
	pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&bound, &attributes);
	pthread_mutex_lock(&bound);
	pthread_mutex_unlock(&bound);
}

int main(int count, char **arguments)
{
	(void)arguments;
	if (count > 1) {
		bind();
		return 0;
	}
	lock_init(&plain, PTHREAD_MUTEX_NORMAL);
	lock_init(&recursive, PTHREAD_MUTEX_RECURSIVE);
	lock_init(&checking, PTHREAD_MUTEX_ERRORCHECK);
	equal = calloc(EQUAL, sizeof *equal);
	for (int i = 0; i < EQUAL; i++)
		lock_init(&equal[i], PTHREAD_MUTEX_NORMAL);
	run(slow, quick);
	run(serve_all, visit_all);
	return 0;
}
