// A writer that keeps the lock for long, readers that want it, and attempts.
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "asleep.h"

static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;

static void spend(long nanoseconds)
{
	struct timespec time = {0, nanoseconds};
	nanosleep(&time, NULL);
}

static void *reader(void *);
static pthread_t readers[2];
static volatile pid_t ids[2];

// The first time it lets the readers begin, so that they find the lock written, and not a writer
// that waits for other readers.
__attribute__((noinline)) static void change(int first)
{
	pthread_rwlock_wrlock(&table);
	if (first)
		for (int i = 0; i < 2; i++)
			pthread_create(&readers[i], NULL, reader, (void *)&ids[i]);
	while (first && !(is_asleep(ids[0]) && is_asleep(ids[1])))
		spend(1000000);
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

static void *reader(void *id)
{
	*(volatile pid_t *)id = (pid_t)syscall(SYS_gettid);
	for (int i = 0; i < 100; i++)
		look();
	return NULL;
}

int main(void)
{
	for (int i = 0; i < 50; i++)
		change(i == 0);
	for (int i = 0; i < 2; i++)
		pthread_join(readers[i], NULL);
	for (int i = 0; i < 20000; i++)
		glance();
	return 0;
}
