/* Runs a program, with its arguments, under a filter that kills it at any system call that neither
 * it nor glibc's locks make. */
#include "filter.h"

int main(int count, char **arguments)
{
    CHECK(count > 1);
    OK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    OK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, whitelist(TESTING), 0, 0));
    execv(arguments[1], arguments + 1);
    return 127;
}
