// bcryptprimitives.dll for Wine before version 9: random bytes, which Rust's standard library asks
// for.
#include <stdbool.h>
#include <stddef.h>

__declspec(dllimport) unsigned char __stdcall SystemFunction036(void *bytes, unsigned long size);

__declspec(dllexport) int __stdcall ProcessPrng(unsigned char *bytes, size_t size)
{
    return SystemFunction036(bytes, (unsigned long)size);
}
