// Writes a title over its arguments, then takes two mutexes in both orders.
#include <pthread.h>
#include <string.h>

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;

static void take(pthread_mutex_t *first, pthread_mutex_t *second)
{
	pthread_mutex_lock(first);
	pthread_mutex_lock(second);
	pthread_mutex_unlock(second);
	pthread_mutex_unlock(first);
}

static void *forwards(void *unused)
{
	take(&one, &other);
	return unused;
}

static void *backwards(void *unused)
{
	take(&other, &one);
	return unused;
}

int main(int count, char **arguments)
{
	(void)count;
	strcpy(arguments[0], "/a b c");
	void *(*const all[])(void *) = {forwards, backwards};
	for (int i = 0; i < 2; i++) {
		pthread_t thread;
		pthread_create(&thread, NULL, all[i], NULL);
		pthread_join(thread, NULL);
	}
	return 0;
}
