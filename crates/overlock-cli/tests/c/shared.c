// A writer that keeps the lock for long, readers that want it, and attempts.
#include <pthread.h>
#include <time.h>

static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;

static void spend(long nanoseconds)
{
	struct timespec time = {0, nanoseconds};
	nanosleep(&time, NULL);
}

__attribute__((noinline)) static void change(void)
{
	pthread_rwlock_wrlock(&table);
	spend(2000000);
	pthread_rwlock_unlock(&table);
	spend(1000000);
}

__attribute__((noinline)) static void look(void)
{
	pthread_rwlock_rdlock(&table);
	spend(100000);
	pthread_rwlock_unlock(&table);
}

__attribute__((noinline)) static void glance(void)
{
	if (pthread_rwlock_tryrdlock(&table) == 0)
		pthread_rwlock_unlock(&table);
}

static void *reader(void *unused)
{
	(void)unused;
	for (int i = 0; i < 100; i++)
		look();
	return NULL;
}

int main(void)
{
	pthread_t threads[2];
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, reader, NULL);
	for (int i = 0; i < 50; i++)
		change();
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 20000; i++)
		glance();
	return 0;
}
