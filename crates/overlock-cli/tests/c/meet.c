// Threads that do nothing but lock one mutex, from two places, by a function that wraps the call.
// It prints the CPU time for an acquisition, in nanoseconds.
//   meet THREADS MILLISECONDS
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER;
static volatile long counter;
static long acquisitions;
static volatile int is_over;

__attribute__((noinline)) static void uv_mutex_lock(pthread_mutex_t *mutex)
{
	pthread_mutex_lock(mutex);
	// No jump: the caller stays on the stack.
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void section_of_the_left(void)
{
	uv_mutex_lock(&busy);
	acquisitions++;
	pthread_mutex_unlock(&busy);
}

__attribute__((noinline)) static void section_of_the_right(void)
{
	uv_mutex_lock(&busy);
	acquisitions++;
	for (int i = 0; i < 5; i++)
		counter++;
	pthread_mutex_unlock(&busy);
}

static void *thread(void *unused)
{
	(void)unused;
	while (!is_over) {
		section_of_the_left();
		section_of_the_right();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int many = argc > 1 ? atoi(argv[1]) : 4;
	pthread_t *threads = calloc(many, sizeof *threads);
	for (int i = 0; i < many; i++)
		pthread_create(&threads[i], NULL, thread, NULL);
	usleep(1000 * (argc > 2 ? atoi(argv[2]) : 300));
	is_over = 1;
	for (int i = 0; i < many; i++)
		pthread_join(threads[i], NULL);
	struct timespec spent;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
	printf("%.3f\n", (spent.tv_sec * 1e9 + spent.tv_nsec) / acquisitions);
	return 0;
}
