/* replay.c: run a fuzz target over every file of the folders given, without a fuzzer. The files are what a fuzzer found
 * to be different from each other, so this is a quick look at all the paths that are known.
 */

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = NULL;
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(1);
    }
    size_t length = (size_t)ftell(file);
    rewind(file);
    bytes = malloc(length == 0 ? 1 : length); /* of this very length, for the sanitizer */
    if (bytes == NULL || fread(bytes, 1, length, file) != length) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(1);
    }
    fclose(file);
    printf("%s\n", path);
    fflush(stdout);
    LLVMFuzzerTestOneInput(bytes, length);
    free(bytes);
}

int main(int argc, char **argv)
{
    unsigned files = 0;
    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        struct dirent *entry;
        while (folder != NULL && (entry = readdir(folder)) != NULL) {
            char path[4096];
            if (entry->d_name[0] == '.')
                continue;
            snprintf(path, sizeof path, "%s/%s", argv[i], entry->d_name);
            run_file(path);
            files++;
        }
        if (folder != NULL)
            closedir(folder);
    }
    printf("%u files\n", files);
    return files == 0;
}
