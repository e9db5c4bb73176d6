// Waits for a futex and for a pipe: some for long, most for as long as another thread takes to
// answer.
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TRIPS = 20000 };

static atomic_uint turn;
static int pipes[2];

static void pass_turns(unsigned parity)
{
	for (unsigned trip = 0; trip < TRIPS; trip++) {
		unsigned now;
		while ((now = atomic_load(&turn)) % 2 != parity)
			syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, now, NULL, NULL, 0);
		atomic_store(&turn, now + 1);
		syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
}

static void *other(void *unused)
{
	(void)unused;
	pass_turns(1);
	usleep(20000);
	return write(pipes[1], "x", 1) == 1 ? NULL : pipes;
}

int main(void)
{
	pthread_t thread;
	void *failed;
	if (pipe(pipes) != 0)
		return 1;
	pthread_create(&thread, NULL, other, NULL);
	pass_turns(0);
	struct pollfd file = {.fd = pipes[0], .events = POLLIN};
	if (poll(&file, 1, -1) != 1 || poll(&file, 1, 0) != 1)
		return 1;
	pthread_join(thread, &failed);
	return failed != NULL;
}
