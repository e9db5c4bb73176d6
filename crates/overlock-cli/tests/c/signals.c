// Prints the signals that come, until SIGTERM does.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	puts("ready");
	fflush(stdout);
	for (;;) {
		int signal;
		sigwait(&all, &signal);
		if (signal != SIGCONT)
			printf("%s\n", sigabbrev_np(signal));
		fflush(stdout);
		if (signal == SIGTERM)
			return 0;
	}
}
