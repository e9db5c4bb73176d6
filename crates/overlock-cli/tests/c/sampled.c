// Mutexes of each kind that nobody waits for, each acquired as often by each function.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 50000 };

#define LOCK_BY(function, call) \
	__attribute__((noinline)) static void function(pthread_mutex_t *mutex) \
	{ \
		struct timespec time = {.tv_sec = 1L << 40}; \
		(void)time; \
		for (int i = 0; i < ROUNDS; i++) { \
			if (call != 0) \
				abort(); \
			pthread_mutex_unlock(mutex); \
		} \
	}

#define OF_KIND(name, kind) \
	LOCK_BY(take_##name, pthread_mutex_lock(mutex)) \
	LOCK_BY(ask_##name, pthread_mutex_trylock(mutex)) \
	LOCK_BY(limit_##name, pthread_mutex_timedlock(mutex, &time)) \
	static void use_##name(void) \
	{ \
		pthread_mutex_t mutex; \
		pthread_mutexattr_t attributes; \
		pthread_mutexattr_init(&attributes); \
		pthread_mutexattr_settype(&attributes, kind); \
		pthread_mutex_init(&mutex, &attributes); \
		take_##name(&mutex); \
		ask_##name(&mutex); \
		limit_##name(&mutex); \
		pthread_mutex_destroy(&mutex); \
	}

OF_KIND(normal, PTHREAD_MUTEX_NORMAL)
OF_KIND(adaptive, PTHREAD_MUTEX_ADAPTIVE_NP)
OF_KIND(recursive, PTHREAD_MUTEX_RECURSIVE)
OF_KIND(checking, PTHREAD_MUTEX_ERRORCHECK)

int main(void)
{
	use_normal();
	use_adaptive();
	use_recursive();
	use_checking();
	return 0;
}
