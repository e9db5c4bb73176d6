/* Prints what the header's inline functions rely on, as words for tests/header.rs. */
#include <overlock.h>
#include <stddef.h>
#include <stdio.h>

int main(void) {
    printf("mutex_size %zu\n", sizeof(ovl_mutex_t));
    printf("mutex_align %zu\n", _Alignof(ovl_mutex_t));
    printf("rwlock_size %zu\n", sizeof(ovl_rwlock_t));
    printf("rwlock_align %zu\n", _Alignof(ovl_rwlock_t));
    printf("cond_size %zu\n", sizeof(ovl_cond_t));
    printf("cond_align %zu\n", _Alignof(ovl_cond_t));
    printf("locked_offset %zu\n", offsetof(ovl_mutex_t, ovl_locked));
    printf("done_offset %zu\n", offsetof(ovl_mutex_t, ovl_done));
    printf("held %d\n", OVL_PRIVATE_HELD);
    printf("kick_shift %d\n", OVL_PRIVATE_KICK_SHIFT);
    /* Addresses of all sizes, for the index in the table. */
    for (uint64_t address = 1; address < UINT64_C(1) << 62; address = address * 3 + 1) {
        printf("index %llu %llu\n", (unsigned long long)address, (unsigned long long)OVL_PRIVATE_KICK_INDEX(address));
    }
    return 0;
}
