/* Watches one processor, its number the only argument, until standard input ends; then prints when it was absent, a
 * line for each time: seconds since 1970 from which and until which. See absence.py.
 *
 * It says "ready" when it has begun. Without the right to a priority above all others it sees nothing. */

#define _GNU_SOURCE
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PERIOD_NS 100000
/* Waking takes up to half of this where nothing is wrong. */
#define LATE_NS 100000
/* Looking at the input costs more than sleeping. */
#define LOOK_EACH 100
#define PRIORITY 2

struct span {
    double from, until;
};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static int is_over(void) {
    struct pollfd input = {.fd = 0, .events = POLLIN};
    return poll(&input, 1, 0) > 0;
}

int main(int count, char **words) {
    cpu_set_t processor;
    CPU_ZERO(&processor);
    CPU_SET(count > 1 ? atoi(words[1]) : 0, &processor);
    struct sched_param priority = {.sched_priority = PRIORITY};
    int sees = !sched_setaffinity(0, sizeof processor, &processor) && !sched_setscheduler(0, SCHED_FIFO, &priority);
    puts("ready");
    fflush(stdout);

    struct span *spans = NULL;
    size_t length = 0, room = 0;
    for (unsigned turn = 1; turn % LOOK_EACH || !is_over(); turn++) {
        double due = now() + PERIOD_NS / 1e9;
        nanosleep(&(struct timespec){.tv_nsec = PERIOD_NS}, NULL);
        double woke = now();
        if (!sees || woke - due < LATE_NS / 1e9)
            continue;
        if (length == room) {
            room = 2 * room + 1024;
            spans = realloc(spans, room * sizeof *spans);
            if (!spans)
                return 1;
        }
        spans[length++] = (struct span){due, woke};
    }
    for (size_t at = 0; at < length; at++)
        printf("%.6f %.6f\n", spans[at].from, spans[at].until);
    return 0;
}
