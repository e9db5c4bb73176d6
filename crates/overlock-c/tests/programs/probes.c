/* The inline functions, for tests/header.rs to inspect their code. */
#include <overlock.h>

int probe_lock(ovl_mutex_t *mutex);
int probe_trylock(ovl_mutex_t *mutex);
int probe_unlock(ovl_mutex_t *mutex);

int probe_lock(ovl_mutex_t *mutex) { return ovl_mutex_lock(mutex); }
int probe_trylock(ovl_mutex_t *mutex) { return ovl_mutex_trylock(mutex); }
int probe_unlock(ovl_mutex_t *mutex) { return ovl_mutex_unlock(mutex); }

int main(void) {
    ovl_mutex_t mutex = OVL_MUTEX_INIT;
    return probe_lock(&mutex) | probe_unlock(&mutex) | probe_trylock(&mutex);
}
