// A thread sends numbers to another, which sends them back, by two queues of GLib: glib SECONDS

#include <glib.h>
#include <stdio.h>
#include <stdlib.h>

static GAsyncQueue *there, *back;

// A queue takes no null pointer, so the numbers begin with 1. G_MAXUINT is the end.
static gpointer answer(gpointer unused) {
    (void)unused;
    gpointer number;
    do {
        number = g_async_queue_pop(there);
        g_async_queue_push(back, number);
    } while (GPOINTER_TO_UINT(number) != G_MAXUINT);
    return NULL;
}

static void ask(guint number) {
    g_async_queue_push(there, GUINT_TO_POINTER(number));
    if (GPOINTER_TO_UINT(g_async_queue_pop(back)) != number) {
        printf("wrong: another number than %u came back\n", number);
        exit(1);
    }
}

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    there = g_async_queue_new();
    back = g_async_queue_new();
    GThread *thread = g_thread_new("answer", answer, NULL);
    const gint64 start = g_get_monotonic_time(), end = start + atoi(argv[1]) * G_USEC_PER_SEC;
    guint trips = 0;
    while (g_get_monotonic_time() < end)
        ask(++trips);
    const gint64 took = g_get_monotonic_time() - start;
    ask(G_MAXUINT);
    g_thread_join(thread);
    printf("per second: %.0f\n", trips * 1e6 / (double)took);
    return 0;
}
