/* Locks, critical sections and reductions of OpenMP. */
#include <omp.h>
#include <stdio.h>

int main(void)
{
    omp_lock_t lock;
    omp_init_lock(&lock);
    long sum = 0, critical = 0, locked = 0;
#pragma omp parallel for num_threads(8) reduction(+ : sum) schedule(dynamic, 7)
    for (int i = 0; i < 100000; i++) {
        sum += i % 7;
        if (i % 16 == 0) {
#pragma omp critical
            critical++;
            omp_set_lock(&lock);
            locked++;
            omp_unset_lock(&lock);
        }
    }
    printf("%ld %ld %ld\n", sum, critical, locked);
    return 0;
}
