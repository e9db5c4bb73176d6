/* An interpreter of scripts that says how many words it was given. */
#include <stdio.h>

int main(int count, char **words)
{
    (void)words;
    printf("%d words\n", count);
    return 0;
}
