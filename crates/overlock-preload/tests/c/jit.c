// Code that is made at run time has unwind information, which the compiler's unwinder sorts when it
// is first asked: with a lock held, in memory that this program's allocator gives with another one.
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct bases {
	void *text, *data, *function;
};

extern void __register_frame(void *);
extern const void *_Unwind_Find_FDE(void *, struct bases *);
extern void *__libc_malloc(size_t);

static pthread_mutex_t arena = PTHREAD_MUTEX_INITIALIZER;
static int is_arena_locked;

void *malloc(size_t size)
{
	if (!is_arena_locked)
		return __libc_malloc(size);
	pthread_mutex_lock(&arena);
	void *memory = __libc_malloc(size);
	pthread_mutex_unlock(&arena);
	return memory;
}

// The rules of a function, as a compiler at run time writes them: one CIE, one FDE and an end.
static uint64_t information[9];
static char code[64];

static void describe(void)
{
	char *at = (char *)information;
	static const char cie[24] = { 20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0,
				      1, 0x78, 16, 1, 0, 0x0c, 7, 8, 0x90, 1 };
	const uint32_t fde[2] = { 28, 28 };
	const uint64_t range[2] = { (uintptr_t)code, sizeof code };
	memcpy(at, cie, sizeof cie);
	memcpy(at + sizeof cie, fde, sizeof fde);
	memcpy(at + sizeof cie + sizeof fde, range, sizeof range);
}

int main(void)
{
	struct bases bases;
	describe();
	__register_frame(information);
	is_arena_locked = 1;
	const void *found = _Unwind_Find_FDE(code + 8, &bases);
	is_arena_locked = 0;
	if (found == NULL)
		return 1;
	puts("done");
	return 0;
}
