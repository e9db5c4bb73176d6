/* Looks up each function of a table, plainly, by each of its versions, and by a handle: the same
 * library has to answer. Prints the answers that differ. */
#include "check.h"

static const char *where(void *function)
{
    Dl_info info;
    return function != NULL && dladdr(function, &info) != 0 ? info.dli_fname : "nowhere";
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    FILE *table = fopen(argv[1], "r");
    CHECK(table != NULL);
    void *libc = dlopen("libc.so.6", RTLD_NOW);
    void *libpthread = dlopen("libpthread.so.0", RTLD_NOW);
    char line[256];
    while (fgets(line, sizeof line, table) != NULL) {
        char *name = strtok(line, " \n");
        if (*name == '#') {
            continue;
        }
        void *plain = dlsym(RTLD_DEFAULT, name);
        if (plain == NULL) {
            continue; /* glibc hides some old names from plain look-ups. */
        }
        const char *here = where(plain);
        for (char *number; (number = strtok(NULL, " \n")) != NULL;) {
            char version[64];
            snprintf(version, sizeof version, "GLIBC_%s", number);
            void *found = dlvsym(RTLD_DEFAULT, name, version);
            if (found != NULL && strcmp(where(found), here) != 0) {
                printf("%s: %s, %s in %s\n", name, here, number, where(found));
            }
        }
        void *handles[] = {libc, libpthread};
        for (int i = 0; i < 2; i++) {
            void *found = handles[i] == NULL ? NULL : dlsym(handles[i], name);
            if (found != NULL && strcmp(where(found), here) != 0) {
                printf("%s: %s, by handle %d in %s\n", name, here, i, where(found));
            }
        }
    }
    fclose(table);
    return 0;
}
