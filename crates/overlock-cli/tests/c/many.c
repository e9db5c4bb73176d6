// Many processes of one program, in each of which a thread waits for a lock.
//   many CHILDREN
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "asleep.h"

static pthread_mutex_t shelf = PTHREAD_MUTEX_INITIALIZER;

static volatile pid_t taker;

__attribute__((noinline)) static void *take_from_shelf(void *unused)
{
	taker = (pid_t)syscall(SYS_gettid);
	pthread_mutex_lock(&shelf);
	pthread_mutex_unlock(&shelf);
	return unused;
}

static int child(void)
{
	pthread_t thread;
	pthread_mutex_lock(&shelf);
	pthread_create(&thread, NULL, take_from_shelf, NULL);
	while (!is_asleep(taker))
		usleep(1000);
	usleep(1000);
	pthread_mutex_unlock(&shelf);
	return pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	int children = argc > 1 ? atoi(argv[1]) : 1;
	for (int i = 0; i < children; i++)
		if (fork() == 0)
			exit(child());
	while (wait(NULL) > 0) {
	}
}
