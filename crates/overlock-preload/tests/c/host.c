/* Runs the main function of a C++ program that was made a plugin, loaded as the second argument
 * says. */
#include "check.h"

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    int deep = strcmp(argv[2], "deep") == 0 ? RTLD_DEEPBIND : 0;
    int apart = strcmp(argv[2], "apart") == 0;
    void *plugin = apart ? dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW) : dlopen(argv[1], RTLD_NOW | deep);
    if (plugin == NULL) {
        puts(dlerror());
        return 1;
    }
    int (*run)(void) = (int (*)(void))dlsym(plugin, "_Z11plugin_mainv");
    CHECK(run != NULL);
    return run();
}
