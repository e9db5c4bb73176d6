// A daemon, whose threads contend until it is killed, for ten minutes at most.
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t hot = PTHREAD_MUTEX_INITIALIZER;

static void *section(void *nothing)
{
	for (;;) {
		pthread_mutex_lock(&hot);
		usleep(1000);
		pthread_mutex_unlock(&hot);
	}
	return nothing;
}

int main(void)
{
	if (daemon(0, 0) != 0)
		return 1;
	alarm(600);
	pthread_t threads[2];
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, section, NULL) != 0)
			return 1;
	pthread_join(threads[0], NULL);
}
