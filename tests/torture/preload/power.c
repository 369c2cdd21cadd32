/* What a power failure takes: everything that was written and not synced.
 *
 * Preloaded into a server, it notes in a table that outlives the process how long each file was
 * when its last fsync began. The test kills the server and cuts every file back to that length.
 * If the test says so in the table, no fsync returns any more: then the power fails while one is
 * under way, so that there always is something which was written and not synced.
 * POWER_TABLE names the table, which the test has made. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SLOTS 1024

struct slot {
    _Atomic uint64_t inode;
    _Atomic uint64_t synced;
};

/* What follows the slots: whether fsyncs are to stand still, and whether one does. */
struct failure {
    _Atomic uint64_t near;
    _Atomic uint64_t struck;
};

struct table {
    struct slot slots[SLOTS];
    struct failure failure;
};

static struct table *table;

__attribute__((constructor)) static void map_table(void) {
    const char *path = getenv("POWER_TABLE");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *at = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (at != MAP_FAILED)
        table = at;
}

static void note(uint64_t inode, uint64_t synced) {
    for (uint64_t i = 0; table && i < SLOTS; i++) {
        struct slot *slot = &table->slots[(inode + i) % SLOTS];
        uint64_t empty = 0;
        if (atomic_load(&slot->inode) == inode || atomic_compare_exchange_strong(&slot->inode, &empty, inode) ||
            empty == inode) {
            atomic_store(&slot->synced, synced);
            return;
        }
    }
}

/* The length is taken before the sync: what is written while it runs may not be covered by it. */
static int sync_with(const char *name, int fd) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    struct stat before;
    int known = fstat(fd, &before) == 0 && S_ISREG(before.st_mode);
    while (table && known && atomic_load(&table->failure.near)) {
        atomic_store(&table->failure.struck, 1);
        pause();
    }
    int result = real(fd);
    if (result == 0 && known)
        note(before.st_ino, before.st_size);
    return result;
}

int fsync(int fd) { return sync_with("fsync", fd); }
int fdatasync(int fd) { return sync_with("fdatasync", fd); }

/* A file that was made and never synced is empty after the failure. */
static int note_new(int fd, int flags) {
    struct stat made;
    if (fd >= 0 && (flags & O_CREAT) && fstat(fd, &made) == 0 && S_ISREG(made.st_mode) && made.st_size == 0)
        note(made.st_ino, 0);
    return fd;
}

#define OPEN(function)                                                                        \
    int function(const char *path, int flags, ...) {                                          \
        int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, #function); \
        va_list rest;                                                                         \
        va_start(rest, flags);                                                                \
        mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(rest, mode_t) : 0;             \
        va_end(rest);                                                                         \
        return note_new(real(path, flags, mode), flags);                                      \
    }

OPEN(open)
OPEN(open64)
