// The parent and its child each use the lock, from functions of their own.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) static void in_parent(void)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
}

__attribute__((noinline)) static void in_child(void)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
}

int main(void)
{
	for (int i = 0; i < 5000; i++)
		in_parent();
	int child = fork();
	if (child == 0) {
		for (int i = 0; i < 5000; i++)
			in_child();
		_exit(0);
	}
	int status;
	return waitpid(child, &status, 0) != child || status != 0;
}
