// One function makes all mutexes, another acquires them. The order is always the same: first,
// second, third. With "turned", it is not.
#include <pthread.h>
#include <string.h>

static pthread_mutex_t first, second, third;

__attribute__((noinline)) static void make(pthread_mutex_t *mutex)
{
	pthread_mutex_init(mutex, NULL);
	__asm__("");
}

__attribute__((noinline)) static void make_recursive(pthread_mutex_t *mutex)
{
	pthread_mutexattr_t attr;
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(mutex, &attr);
	__asm__("");
}

__attribute__((noinline)) static void both(pthread_mutex_t *outer, pthread_mutex_t *inner)
{
	pthread_mutex_lock(outer);
	pthread_mutex_lock(inner);
	pthread_mutex_unlock(inner);
	pthread_mutex_unlock(outer);
}

int main(int count, char **words)
{
	make(&first);
	make_recursive(&second);
	make(&third);
	both(&first, &second);
	both(&second, &third);
	if (count > 1 && strcmp(words[1], "turned") == 0)
		both(&third, &first);
}
