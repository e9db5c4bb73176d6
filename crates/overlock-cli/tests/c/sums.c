// Initialises three locks, of which one stays the C library's, and with an argument ends with
// another file as its standard error. Its child says nothing.
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **arguments)
{
	pthread_mutex_t mutex, bound;
	pthread_rwlock_t lock;
	pthread_mutexattr_t attributes;
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&mutex, NULL);
	pthread_mutex_init(&bound, &attributes);
	pthread_rwlock_init(&lock, NULL);
	if (!fork())
		exit(0);
	wait(NULL);
	if (count > 1)
		dup2(open(arguments[1], O_WRONLY | O_CREAT, 0600), 2);
	return 0;
}
