// For programs whose threads meet others in a wait: whether a thread sleeps, as the kernel says.
#ifndef ASLEEP_H
#define ASLEEP_H

#include <stdio.h>
#include <string.h>
#include <sys/types.h>

// A thread that has no CPU yet is awake. 0 is no thread.
static inline int is_asleep(pid_t thread)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    FILE *file = thread == 0 ? NULL : fopen(path, "r");
    if (file == NULL)
        return 0;
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    // Behind the name, which may have anything in it.
    char *name = strrchr(text, ')');
    return name != NULL && name[1] == ' ' && name[2] == 'S';
}

#endif
