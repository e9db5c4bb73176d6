/* Unlocks a mutex that is free. Debug builds of the library notice. */
#define OVL_NO_INLINE
#include <overlock.h>

int main(void) {
    ovl_mutex_t mutex = OVL_MUTEX_INIT;
    return ovl_mutex_unlock(&mutex);
}
