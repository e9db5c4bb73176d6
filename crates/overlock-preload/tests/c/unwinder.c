// A program with an unwinder of its own, in front of the compiler's, which takes a lock: as
// libunwind's does.
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t unwinders = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;

int _Unwind_Backtrace(void *each, void *data)
{
	(void)each;
	(void)data;
	pthread_mutex_lock(&unwinders);
	pthread_mutex_lock(&other);
	pthread_mutex_unlock(&other);
	pthread_mutex_unlock(&unwinders);
	return 5;
}

int main(void)
{
	_Unwind_Backtrace(NULL, NULL);
	puts("done");
	return 0;
}
