// Storms for the validator: sound programs, with one mistake at the end that it has to find. The
// argument names the scene, a second one how much of it.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static long scale;

static void fail(const char *what)
{
	fprintf(stderr, "storm: %s\n", what);
	exit(1);
}

static pthread_t begin(void *(*run)(void *), void *argument)
{
	pthread_t thread;
	pthread_attr_t attributes;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 64 << 10);
	if (pthread_create(&thread, &attributes, run, argument))
		fail("no thread");
	pthread_attr_destroy(&attributes);
	return thread;
}

static void both(pthread_mutex_t *one, pthread_mutex_t *two)
{
	pthread_mutex_lock(one);
	pthread_mutex_lock(two);
	pthread_mutex_unlock(two);
	pthread_mutex_unlock(one);
}

// The mistake: two threads that meet take two locks in two orders.
static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER, right = PTHREAD_MUTEX_INITIALIZER;

static void *turned(void *unused)
{
	both(&right, &left);
	return unused;
}

static void mistake(void)
{
	both(&left, &right);
	pthread_join(begin(turned, NULL), NULL);
}

// Many threads take pairs of many locks, in the order of their addresses.
static pthread_mutex_t *locks;
static long count;

static void *pairs(void *seed)
{
	uint64_t state = (uintptr_t)seed * 0x9e3779b97f4a7c15u + 1;
	for (long i = 0; i < 2 * count / 64; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		long one = (long)(state >> 33) % count, two = (one + 1 + (long)(state >> 60)) % count;
		if (one != two)
			both(&locks[one < two ? one : two], &locks[one < two ? two : one]);
	}
	return NULL;
}

static void threads(void)
{
	pthread_t all[64];
	count = scale;
	locks = calloc((size_t)count, sizeof *locks);
	for (long i = 0; i < 64; i++)
		all[i] = begin(pairs, (void *)(i + 1));
	for (long i = 0; i < 64; i++)
		pthread_join(all[i], NULL);
	mistake();
}

// Each thread holds many locks at a time.
static void *nested(void *depth)
{
	for (int round = 0; round < 20; round++) {
		for (long i = 0; i < (long)(intptr_t)depth; i++)
			pthread_mutex_lock(&locks[i]);
		for (long i = (long)(intptr_t)depth; i-- > 0;)
			pthread_mutex_unlock(&locks[i]);
	}
	return NULL;
}

static void *ends_turned(void *unused)
{
	both(&locks[scale - 1], &locks[0]);
	return unused;
}

static void deep(void)
{
	pthread_t all[8];
	locks = calloc((size_t)scale, sizeof *locks);
	for (int i = 0; i < 8; i++)
		all[i] = begin(nested, (void *)(intptr_t)scale);
	for (int i = 0; i < 8; i++)
		pthread_join(all[i], NULL);
	if (scale > 64)
		mistake();
	else {
		nested((void *)(intptr_t)scale);
		pthread_join(begin(ends_turned, NULL), NULL);
	}
}

// Threads that come and go.
static void *visits(void *lock)
{
	both(lock, &right);
	return NULL;
}

static void churn(void)
{
	visits(&left);
	for (long i = 0; i < scale; i += 8) {
		pthread_t some[8];
		for (int j = 0; j < 8; j++)
			some[j] = begin(visits, &left);
		for (int j = 0; j < 8; j++)
			pthread_join(some[j], NULL);
	}
	pthread_join(begin(turned, NULL), NULL);
}

// Each lock has an allocation stack of its own: one of 2^13.
struct object {
	pthread_mutex_t lock;
};

static void make_right(struct object *object, unsigned path, int depth);

__attribute__((noinline)) static void make_left(struct object *object, unsigned path, int depth)
{
	if (depth == 0)
		pthread_mutex_init(&object->lock, NULL);
	else if (path & 1)
		make_left(object, path >> 1, depth - 1);
	else
		make_right(object, path >> 1, depth - 1);
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void make_right(struct object *object, unsigned path, int depth)
{
	if (depth == 0)
		pthread_mutex_init(&object->lock, NULL);
	else if (path & 1)
		make_left(object, path >> 1, depth - 1);
	else
		make_right(object, path >> 1, depth - 1);
	__asm__ volatile("");
}

static void classes(void)
{
	for (long i = 0; i < scale; i++) {
		struct object *object = malloc(sizeof *object);
		make_left(object, (unsigned)i, 13);
		both(&left, &object->lock);
		// Every second one is never destroyed.
		if (i % 2)
			pthread_mutex_destroy(&object->lock);
		if (i % 4)
			free(object);
	}
	mistake();
}

// Children of a process whose threads lock all the time.
static volatile int stops;

static void *locks_on(void *seed)
{
	while (!stops)
		pairs(seed);
	return NULL;
}

static void forks(void)
{
	pthread_t all[4];
	count = 4096;
	locks = calloc((size_t)count, sizeof *locks);
	for (long i = 0; i < 4; i++)
		all[i] = begin(locks_on, (void *)(i + 1));
	for (long i = 0; i < scale; i++) {
		int status;
		pid_t child = fork();
		if (child == 0) {
			pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
			both(&own, &right);
			_exit(0);
		}
		if (child < 0 || waitpid(child, &status, 0) != child || status)
			fail("a child");
	}
	stops = 1;
	for (long i = 0; i < 4; i++)
		pthread_join(all[i], NULL);
	mistake();
}

// A handler that locks, at any moment.
static pthread_mutex_t handlers = PTHREAD_MUTEX_INITIALIZER;
static volatile long handled;

static void handler(int signal)
{
	(void)signal;
	pthread_mutex_lock(&handlers);
	handled++;
	pthread_mutex_unlock(&handlers);
}

static void signals(void)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
	struct itimerval often = {{0, 200}, {0, 200}};
	pthread_t all[4];
	count = 4096;
	locks = calloc((size_t)count, sizeof *locks);
	sigaction(SIGPROF, &action, NULL);
	setitimer(ITIMER_PROF, &often, NULL);
	for (long i = 0; i < 4; i++)
		all[i] = begin(locks_on, (void *)(i + 1));
	while (handled < scale)
		both(&locks[handled % 64], &locks[64 + handled % 64]);
	stops = 1;
	for (long i = 0; i < 4; i++)
		pthread_join(all[i], NULL);
	signal(SIGPROF, SIG_IGN);
	mistake();
}

int main(int argc, char **argv)
{
	const struct {
		const char *name;
		void (*run)(void);
	} scenes[] = {{"threads", threads}, {"deep", deep}, {"churn", churn}, {"classes", classes}, {"forks", forks}, {"signals", signals}};
	if (argc < 3)
		return 1;
	scale = atol(argv[2]);
	for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++)
		if (!strcmp(argv[1], scenes[i].name))
			scenes[i].run();
	puts("done");
	return 0;
}
