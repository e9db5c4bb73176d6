// A lock is acquired below code that is made at run time: it has no unwind information, a frame
// pointer or none, and a name in a perf map.
//   made [NAME [bare]]
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "asleep.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) static void mutex_lock(void)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
}

typedef void (*caller)(void (*)(void));

// Calls its argument.
#ifdef __x86_64__
static const unsigned char framed[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
static const unsigned char bare[] = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x08, 0xc3};
#else
static const unsigned framed[] = {0xa9bf7bfd, 0x910003fd, 0xd63f0000, 0xa8c17bfd, 0xd65f03c0};
static const unsigned bare[] = {0xf81f0ffe, 0xd63f0000, 0xf84107fe, 0xd65f03c0};
#endif

__attribute__((noinline)) static void interpret(caller made)
{
	made(mutex_lock);
	__asm__ volatile("");
}

static volatile pid_t waiter;

static void *waits(void *made)
{
	waiter = (pid_t)syscall(SYS_gettid);
	interpret((caller)made);
	__asm__ volatile("");
	return NULL;
}

int main(int argc, char **argv)
{
	char path[64];
	void *made = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(made, argc > 2 ? (void *)bare : (void *)framed, argc > 2 ? sizeof bare : sizeof framed);
	__builtin___clear_cache(made, (char *)made + 64);
	mprotect(made, 4096, PROT_READ | PROT_EXEC);
	snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
	FILE *map = fopen(path, "w");
	fprintf(map, "%lx %lx %s\n", (unsigned long)made, 64UL, argc > 1 ? argv[1] : "made");
	fclose(map);
	pthread_t thread;
	pthread_mutex_lock(&lock);
	pthread_create(&thread, NULL, waits, made);
	while (!is_asleep(waiter))
		usleep(1000);
	usleep(1000);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	puts(path);
}
