// A thread loads a library, whose constructor does not return. So a second report waits for the
// loader for ever. With PLUGIN it is that library.
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#ifdef PLUGIN

extern sem_t is_loading;

__attribute__((constructor)) static void load(void)
{
	sem_post(&is_loading);
	for (;;)
		pause();
}

#else

sem_t is_loading;

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER,
		       c = PTHREAD_MUTEX_INITIALIZER, d = PTHREAD_MUTEX_INITIALIZER;

static void take(pthread_mutex_t *first, pthread_mutex_t *second)
{
	pthread_mutex_lock(first);
	pthread_mutex_lock(second);
	pthread_mutex_unlock(second);
	pthread_mutex_unlock(first);
}

static void *loads(void *path)
{
	dlopen(path, RTLD_NOW);
	return NULL;
}

int main(int count, char **arguments)
{
	pthread_t thread;
	sigset_t all;
	if (count < 2)
		return 2;
	// A shell that runs the tests in the background has it ignored.
	signal(SIGINT, SIG_DFL);
	take(&a, &b);
	take(&b, &a);
	sem_init(&is_loading, 0, 0);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	pthread_create(&thread, NULL, loads, arguments[1]);
	sigemptyset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	while (sem_wait(&is_loading) != 0)
		;
	take(&c, &d);
	puts("stuck");
	fflush(stdout);
	take(&d, &c);
	return 1;
}

#endif
