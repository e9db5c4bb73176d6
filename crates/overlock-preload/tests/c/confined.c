/* Loads a plugin under a filter that kills it at system calls that the loader does not make. */
#include "filter.h"

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    OK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    OK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, whitelist(LOADING), 0, 0));
    for (int apart = 0; apart < 2; apart++) {
        void *loaded = apart ? dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW)
                             : dlopen(argv[1], RTLD_NOW | RTLD_DEEPBIND);
        CHECK(loaded != NULL);
        puts(((const char *(*)(void))dlsym(loaded, "asks"))());
        puts(((const char *(*)(void))dlsym(loaded, "indexes"))());
    }
    return 0;
}
