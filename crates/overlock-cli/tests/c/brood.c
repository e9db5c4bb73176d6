// Children, one after another, in each of which a thread waits for another one's lock. Prints the
// largest number of tables that there were at one time. Where there are many it waits, not without
// end, for others to take them in: they may have no CPU for a while.
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "asleep.h"

// Of so many acquisitions some are sampled.
enum { CHILDREN = 300, ROUNDS = 5000, MANY = 100, PATIENCE_MS = 600000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static volatile pid_t begun;

static void *waiter(void *unused)
{
	begun = (pid_t)syscall(SYS_gettid);
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	return unused;
}

static int child(void)
{
	pthread_t thread;
	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
	}
	pthread_mutex_lock(&lock);
	if (pthread_create(&thread, NULL, waiter, NULL))
		return 1;
	while (!is_asleep(begun))
		usleep(100);
	usleep(3000);
	pthread_mutex_unlock(&lock);
	return pthread_join(thread, NULL);
}

static int tables(void)
{
	int count = 0;
	DIR *dir = opendir(getenv("OVERLOCK_STAT_DIR"));
	while (dir && readdir(dir))
		count++;
	return !dir || closedir(dir) ? 1 << 20 : count;
}

int main(void)
{
	int most = 0, waited = 0;
	for (int i = 0; i < CHILDREN; i++) {
		int status;
		pid_t pid = fork();
		if (pid == 0)
			_exit(child());
		if (waitpid(pid, &status, 0) != pid || status)
			return 1;
		int now;
		while ((now = tables()) > MANY && waited < PATIENCE_MS) {
			usleep(10000);
			waited += 10;
		}
		if (now > most)
			most = now;
	}
	printf("%d\n", most);
	return 0;
}
