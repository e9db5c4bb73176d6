// Drops privileges, and then has threads contend: "here"; in a child, "fork"; in the child of one
// that has given them up, "later"; in a child that sees other files, "chroot".
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t hot = PTHREAD_MUTEX_INITIALIZER;

static int entered;

// Each goes on until both have been there often: one may be late.
static void *section(void *nothing)
{
	for (int i = 0; i < 20 || __atomic_load_n(&entered, __ATOMIC_RELAXED) < 40; i++) {
		pthread_mutex_lock(&hot);
		usleep(1000);
		if (i < 20)
			__atomic_fetch_add(&entered, 1, __ATOMIC_RELAXED);
		pthread_mutex_unlock(&hot);
	}
	return nothing;
}

static void contend(void)
{
	pthread_t threads[2];
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, section, NULL) != 0)
			exit(1);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

static void in_child(const char *root, int user)
{
	int child = fork();
	if (child == 0) {
		if ((root != NULL && chroot(root) != 0) || (user != 0 && setuid(user) != 0))
			_exit(1);
		contend();
		_exit(0);
	}
	int status;
	if (waitpid(child, &status, 0) != child || status != 0)
		exit(1);
}

int main(int count, char **words)
{
	const char *how = count == 3 ? words[1] : "";
	int user = count == 3 ? atoi(words[2]) : 0;
	if (strcmp(how, "here") == 0) {
		if (setuid(user) != 0)
			return 1;
		contend();
	} else if (strcmp(how, "fork") == 0) {
		in_child(NULL, user);
	} else if (strcmp(how, "later") == 0) {
		if (setuid(user) != 0)
			return 1;
		in_child(NULL, 0);
	} else if (strcmp(how, "chroot") == 0) {
		in_child("/usr", user);
	} else {
		return 2;
	}
	return 0;
}
