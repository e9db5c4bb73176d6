// A condition whose signal comes while somebody else holds the mutex, and keeps it for a while:
// those who waited meet it.
#include <pthread.h>
#include <time.h>

static pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static int waiting, is_over;

static void spend(long milliseconds)
{
	struct timespec time = {0, milliseconds * 1000000};
	nanosleep(&time, NULL);
}

__attribute__((noinline)) static void *await_turn(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&busy);
	waiting++;
	while (!is_over)
		pthread_cond_wait(&turn, &busy);
	pthread_mutex_unlock(&busy);
	return NULL;
}

static void *call(void *unused)
{
	pthread_cond_broadcast(&turn);
	return unused;
}

int main(void)
{
	pthread_t threads[2], caller;
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, await_turn, NULL);
	for (int all = 0; !all;) {
		spend(5);
		pthread_mutex_lock(&busy);
		all = waiting == 2;
		is_over = all;
		if (all) {
			pthread_create(&caller, NULL, call, NULL);
			pthread_join(caller, NULL);
			// Until they have woken: on a busy machine that takes a while.
			spend(400);
		}
		pthread_mutex_unlock(&busy);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
