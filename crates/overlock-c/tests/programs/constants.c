/* Prints the layout that the header's inline functions rely on, as words for tests/header.rs. */
#include <overlock.h>
#include <stdio.h>

int main(void) {
    printf("mutex_size %zu\n", sizeof(ovl_mutex_t));
    printf("mutex_align %zu\n", _Alignof(ovl_mutex_t));
    printf("rwlock_size %zu\n", sizeof(ovl_rwlock_t));
    printf("rwlock_align %zu\n", _Alignof(ovl_rwlock_t));
    printf("cond_size %zu\n", sizeof(ovl_cond_t));
    printf("cond_align %zu\n", _Alignof(ovl_cond_t));
    /* A mutex that the library has locked, as the inline functions see it. */
    ovl_mutex_t mutex = OVL_MUTEX_INIT;
    (ovl_mutex_lock)(&mutex);
    printf("held %d\n", *(unsigned char *)&mutex);
    printf("busy %d\n", ovl_mutex_trylock(&mutex) == EBUSY);
    ovl_mutex_unlock(&mutex);
    printf("free %d\n", *(unsigned char *)&mutex);
    return 0;
}
