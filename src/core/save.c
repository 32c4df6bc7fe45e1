/* save.c: see save.h. */

#include "save.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "digits.h"
#include "os.h"

static int write_all(int file, const uint8_t *bytes, size_t length)
{
    while (length > 0) {
        ssize_t written = write(file, bytes, length < INT_MAX ? length : INT_MAX);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? errno : EIO;
        bytes += written;
        length -= (size_t)written;
    }
    return 0;
}

/* Close, and return the first error. */
static int closed(int file, int error)
{
    return close(file) != 0 && error == 0 ? errno : error;
}

/* A name beside `path` that nobody else uses. Returns false if it is too long. */
static bool other_name(const char *path, char *other, size_t room)
{
    const char *slash = strrchr(path, '/');
    size_t folder = slash == NULL ? 0 : (size_t)(slash - path) + 1;
    if (folder + 96 > room)
        return false;
    memcpy(other, path, folder);
    strcpy(hl_digits(stpcpy(other + folder, ".heapledger-"), hl_os_random(), 16), ".tmp");
    return true;
}

/* A new file that is complete and has the name `other`. */
static int fill(const char *path, const char *other, const uint8_t *bytes, size_t length)
{
    char folder[PATH_MAX], link[96];
    const char *slash = strrchr(path, '/');
    size_t folder_length = slash == NULL ? 0 : (size_t)(slash - path);
    if (folder_length + 2 > sizeof folder)
        return ENAMETOOLONG;
    memcpy(folder, path, folder_length);
    strcpy(folder + folder_length, slash == path ? "/" : slash == NULL ? "." : "");
    int file = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    if (file >= 0) {
        int error = write_all(file, bytes, length);
        (void)hl_digits(stpcpy(link, "/proc/self/fd/"), (uint64_t)file, 10);
        bool named = error == 0 && linkat(AT_FDCWD, link, AT_FDCWD, other, AT_SYMLINK_FOLLOW) == 0;
        error = closed(file, error);
        if (named || error != 0)
            return error;
    }
    file = open(other, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (file < 0)
        return errno;
    int error = closed(file, write_all(file, bytes, length));
    if (error != 0)
        (void)unlink(other);
    return error;
}

static int save(const char *path, const uint8_t *bytes, size_t length)
{
    struct stat there;
    char other[PATH_MAX];
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode)) {
        int file = open(path, O_WRONLY | O_CLOEXEC);
        return file < 0 ? errno : closed(file, write_all(file, bytes, length));
    }
    if (!other_name(path, other, sizeof other))
        return ENAMETOOLONG;
    int error = fill(path, other, bytes, length);
    if (error == 0 && rename(other, path) != 0) {
        error = errno;
        (void)unlink(other);
    }
    return error;
}

int hl_save(const char *path, const uint8_t *bytes, size_t length)
{
    int host_errno = errno;
    int error = save(path, bytes, length);
    errno = host_errno;
    return error;
}
