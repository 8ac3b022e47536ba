/* What a program asks of the disk below one directory, and disks that fail: a library for LD_PRELOAD.

   power_record(root, log) begins: each call that changes a file or a name below root is appended to the file log, after
   it was carried out, as one record (disk_log.py reads them). power_mark(text) writes a remark between them.
   power_fail(kinds, nth, error, lasts) has the nth such call of these kinds from now fail, and with lasts all after it;
   power_seen() is how many there were. What is written through a shared mapping is not seen, and nothing of it is
   promised: SQLite's -shm. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRITE = 1, SYNC = 2, NAME = 4, CUT = 8, OPEN = 16, MARK = 32, FAILED_SYNC = 64, SYNC_NAMES = 128 };
enum { INODES = 1 << 16 };

static char root[PATH_MAX];
static size_t root_length;
static int log_fd = -1;
static unsigned char watched[INODES / 8]; /* by a hash of the inode: a stranger's record is one too many, no loss */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int fail_kinds, fail_nth, fail_error, fail_lasts, seen;

struct head { uint32_t kind, first, second; uint64_t inode, offset; };

static void record(uint32_t kind, uint64_t inode, uint64_t offset, const char *first, size_t first_length,
                   const void *second, size_t second_length) {
    if (log_fd < 0) return;
    struct head head = {kind, (uint32_t)first_length, (uint32_t)second_length, inode, offset};
    struct iovec parts[3] = {{&head, sizeof head}, {(void *)first, first_length}, {(void *)second, second_length}};
    int before = errno;
    syscall(SYS_writev, log_fd, parts, 3);
    errno = before;
}

/* The absolute name of path, of which only the last part need not be there. */
static int named(int at, const char *path, char *out) {
    char joined[PATH_MAX], above[PATH_MAX];
    if (path[0] == '/') {
        snprintf(joined, sizeof joined, "%s", path);
    } else {
        char link[64];
        if (at == AT_FDCWD) {
            if (!getcwd(above, sizeof above)) return 0;
        } else {
            snprintf(link, sizeof link, "/proc/self/fd/%d", at);
            ssize_t length = readlink(link, above, sizeof above - 1);
            if (length < 0) return 0;
            above[length] = 0;
        }
        if ((size_t)snprintf(joined, sizeof joined, "%s/%s", above, path) >= sizeof joined) return 0;
    }
    size_t end = strlen(joined);
    while (end > 1 && joined[end - 1] == '/') joined[--end] = 0;
    char *last = strrchr(joined, '/');
    *last = 0;
    if (!realpath(*joined ? joined : "/", above)) return 0;
    if (strlen(above) + strlen(last + 1) + 2 > PATH_MAX) return 0;
    sprintf(out, "%s/%s", above, last + 1);
    return log_fd >= 0 && !strncmp(out, root, root_length) && out[root_length] == '/';
}

static int below(int fd, struct stat *found) {
    if (log_fd < 0 || fd == log_fd) return 0;
    int before = errno;
    int is = !fstat(fd, found) && (S_ISREG(found->st_mode) || S_ISDIR(found->st_mode)) &&
             watched[found->st_ino % INODES / 8] & 1 << found->st_ino % 8;
    errno = before;
    return is;
}

static int fails(int kind) {
    if (!(fail_kinds & kind)) return 0;
    int number = __atomic_add_fetch(&seen, 1, __ATOMIC_SEQ_CST);
    if (number != fail_nth && !(fail_lasts && number > fail_nth && fail_nth)) return 0;
    errno = fail_error;
    return 1;
}

static void watch(ino_t inode) { watched[inode % INODES / 8] |= 1 << inode % 8; }

void power_watch(uint64_t inode) { watch(inode); }

int power_record(const char *directory, const char *log) {
    if (!realpath(directory, root)) return -1;
    root_length = strlen(root);
    memset(watched, 0, sizeof watched);
    if (log_fd >= 0) syscall(SYS_close, log_fd);
    log_fd = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    return log_fd < 0 ? -1 : 0;
}

void power_end(void) {
    if (log_fd >= 0) syscall(SYS_close, log_fd);
    log_fd = -1;
    fail_kinds = 0;
}

void power_mark(const char *text) { record(MARK, 0, 0, text, strlen(text), 0, 0); }

void power_fail(int kinds, int nth, int error, int lasts) {
    fail_kinds = kinds, fail_nth = nth, fail_error = error, fail_lasts = lasts, seen = 0;
}

int power_seen(void) { return seen; }

static ssize_t written(int fd, const void *data, size_t length, off_t offset, int at_offset) {
    struct stat found;
    if (!below(fd, &found)) return at_offset ? syscall(SYS_pwrite64, fd, data, length, offset) : syscall(SYS_write, fd, data, length);
    pthread_mutex_lock(&lock);
    ssize_t done = -1;
    if (fails(WRITE)) {
        /* A disk that fills up takes a part first. */
        if (fail_error != ENOSPC || length < 2 || seen != fail_nth) goto out;
        length /= 2;
    }
    done = at_offset ? syscall(SYS_pwrite64, fd, data, length, offset) : syscall(SYS_write, fd, data, length);
    if (done > 0) {
        if (!at_offset || fcntl(fd, F_GETFL) & O_APPEND) {
            struct stat now;
            offset = at_offset ? (fstat(fd, &now), now.st_size - done) : syscall(SYS_lseek, fd, 0, SEEK_CUR) - done;
        }
        record(WRITE, found.st_ino, offset, data, done, 0, 0);
    }
out:
    pthread_mutex_unlock(&lock);
    return done;
}

ssize_t write(int fd, const void *data, size_t length) { return written(fd, data, length, 0, 0); }
ssize_t pwrite(int fd, const void *data, size_t length, off_t at) { return written(fd, data, length, at, 1); }
ssize_t pwrite64(int fd, const void *data, size_t length, off_t at) { return written(fd, data, length, at, 1); }

static ssize_t written_parts(int fd, const struct iovec *parts, int count, off_t offset, int at_offset) {
    ssize_t all = 0;
    for (int n = 0; n < count; n++) {
        ssize_t done = written(fd, parts[n].iov_base, parts[n].iov_len, offset + all, at_offset);
        if (done < 0) return all ? all : -1;
        all += done;
        if ((size_t)done < parts[n].iov_len) break;
    }
    return all;
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    struct stat found;
    return below(fd, &found) ? written_parts(fd, parts, count, 0, 0) : syscall(SYS_writev, fd, parts, count);
}
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) { return written_parts(fd, parts, count, at, 1); }
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off_t at) { return written_parts(fd, parts, count, at, 1); }
ssize_t pwritev2(int fd, const struct iovec *parts, int count, off_t at, int flags) { (void)flags; return written_parts(fd, parts, count, at, 1); }
ssize_t pwritev64v2(int fd, const struct iovec *parts, int count, off_t at, int flags) { (void)flags; return written_parts(fd, parts, count, at, 1); }

/* Who copies within the kernel takes write instead. */
ssize_t sendfile64(int to, int from, off_t *at, size_t length) {
    struct stat found;
    if (below(to, &found)) { errno = EINVAL; return -1; }
    return syscall(SYS_sendfile, to, from, at, length);
}
ssize_t sendfile(int to, int from, off_t *at, size_t length) { return sendfile64(to, from, at, length); }
ssize_t copy_file_range(int from, off_t *from_at, int to, off_t *to_at, size_t length, unsigned flags) {
    struct stat found;
    if (below(to, &found)) { errno = EINVAL; return -1; }
    return syscall(SYS_copy_file_range, from, from_at, to, to_at, length, flags);
}

static int cut(int fd, off_t length) {
    struct stat found;
    if (!below(fd, &found)) return syscall(SYS_ftruncate, fd, length);
    if (fails(CUT)) return -1;
    int failed = syscall(SYS_ftruncate, fd, length);
    if (!failed) record(CUT, found.st_ino, length, 0, 0, 0, 0);
    return failed;
}
int ftruncate(int fd, off_t length) { return cut(fd, length); }
int ftruncate64(int fd, off_t length) { return cut(fd, length); }
int truncate(const char *path, off_t length) {
    int fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    int failed = cut(fd, length), why = errno;
    syscall(SYS_close, fd);
    errno = why;
    return failed;
}
int truncate64(const char *path, off_t length) { return truncate(path, length); }

/* Space that is taken in advance is not told from a file that is made longer. */
static int taken(int fd, off_t at, off_t length) {
    struct stat found;
    if (fstat(fd, &found)) return -1;
    return at + length > found.st_size ? cut(fd, at + length) : 0;
}
int fallocate(int fd, int mode, off_t at, off_t length) { return mode ? (errno = EOPNOTSUPP, -1) : taken(fd, at, length); }
int fallocate64(int fd, int mode, off_t at, off_t length) { return fallocate(fd, mode, at, length); }
int posix_fallocate(int fd, off_t at, off_t length) { return taken(fd, at, length) ? errno : 0; }
int posix_fallocate64(int fd, off_t at, off_t length) { return posix_fallocate(fd, at, length); }

static int synced(int fd, long call) {
    struct stat found;
    if (!below(fd, &found)) return syscall(call, fd);
    if (fails(S_ISDIR(found.st_mode) ? SYNC_NAMES : SYNC)) {
        record(FAILED_SYNC, found.st_ino, 0, 0, 0, 0, 0);
        return -1;
    }
    /* Not carried out: what it would take is not what is looked at, and the log is what counts. */
    record(SYNC, found.st_ino, 0, 0, 0, 0, 0);
    return 0;
}
int fsync(int fd) { return synced(fd, SYS_fsync); }
int fdatasync(int fd) { return synced(fd, SYS_fdatasync); }

static int opened(int at, const char *path, int flags, mode_t mode) {
    char full[PATH_MAX];
    struct stat found;
    int before = errno, is_below = named(at, path, full);
    if (!is_below) {
        errno = before;
        return syscall(SYS_openat, at, path, flags, mode);
    }
    int is_there = !fstatat(AT_FDCWD, full, &found, 0);
    errno = before;
    int changes = flags & (O_CREAT | O_TRUNC) && (!is_there || flags & O_TRUNC);
    pthread_mutex_lock(&lock);
    int fd = changes && fails(OPEN) ? -1 : syscall(SYS_openat, at, path, flags, mode);
    if (fd >= 0 && !fstat(fd, &found)) {
        watch(found.st_ino);
        if (!is_there) record(OPEN, found.st_ino, 0, full, strlen(full), "file", 4);
        else if (flags & O_TRUNC) record(CUT, found.st_ino, 0, 0, 0, 0, 0);
    }
    pthread_mutex_unlock(&lock);
    return fd;
}

#define WITH_MODE(mode) mode_t mode = 0; if (flags & (O_CREAT | O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); }
int open(const char *path, int flags, ...) { WITH_MODE(mode) return opened(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { WITH_MODE(mode) return opened(AT_FDCWD, path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { WITH_MODE(mode) return opened(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { WITH_MODE(mode) return opened(at, path, flags, mode); }

static int renamed(int from_at, const char *from, int to_at, const char *to, unsigned flags) {
    char full_from[PATH_MAX], full_to[PATH_MAX];
    int is_below = named(from_at, from, full_from) | named(to_at, to, full_to);
    if (is_below && fails(NAME)) return -1;
    int failed = syscall(SYS_renameat2, from_at, from, to_at, to, flags);
    if (!failed && is_below) record(NAME, 0, 0, full_from, strlen(full_from), full_to, strlen(full_to));
    return failed;
}
int rename(const char *from, const char *to) { return renamed(AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int from_at, const char *from, int to_at, const char *to) { return renamed(from_at, from, to_at, to, 0); }
int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags) { return renamed(from_at, from, to_at, to, flags); }

static int removed(int at, const char *path, int flags) {
    char full[PATH_MAX];
    int is_below = named(at, path, full);
    if (is_below && fails(NAME)) return -1;
    int failed = syscall(SYS_unlinkat, at, path, flags);
    if (!failed && is_below) record(NAME, 0, 0, full, strlen(full), 0, 0);
    return failed;
}
int unlink(const char *path) { return removed(AT_FDCWD, path, 0); }
int unlinkat(int at, const char *path, int flags) { return removed(at, path, flags); }
int rmdir(const char *path) { return removed(AT_FDCWD, path, AT_REMOVEDIR); }

static int made(int at, const char *path, mode_t mode) {
    char full[PATH_MAX];
    struct stat found;
    int is_below = named(at, path, full);
    if (is_below && fails(OPEN)) return -1;
    int failed = syscall(SYS_mkdirat, at, path, mode);
    if (!failed && is_below && !stat(full, &found)) {
        watch(found.st_ino);
        record(OPEN, found.st_ino, 0, full, strlen(full), "directory", 9);
    }
    return failed;
}
int mkdir(const char *path, mode_t mode) { return made(AT_FDCWD, path, mode); }
int mkdirat(int at, const char *path, mode_t mode) { return made(at, path, mode); }

static int linked(int from_at, const char *from, int to_at, const char *to, int flags) {
    char full[PATH_MAX];
    struct stat found;
    int is_below = named(to_at, to, full);
    if (is_below && fails(NAME)) return -1;
    int failed = syscall(SYS_linkat, from_at, from, to_at, to, flags);
    if (!failed && is_below && !stat(full, &found)) record(OPEN, found.st_ino, 0, full, strlen(full), "link", 4);
    return failed;
}
int link(const char *from, const char *to) { return linked(AT_FDCWD, from, AT_FDCWD, to, 0); }
int linkat(int from_at, const char *from, int to_at, const char *to, int flags) { return linked(from_at, from, to_at, to, flags); }
