/* test_size_text.c: hl_size_text against tests/sizes.txt, the table that Python and the page are tested with, too. */

#include <stdlib.h>

#include "../../src/core/size_text.h"
#include "check.h"

static void every_size_of_the_table(void)
{
    char line[100], text[HL_SIZE_TEXT_ROOM];
    size_t count = 0;
    FILE *table = fopen(HL_CHECKOUT "/tests/sizes.txt", "r");
    CHECK_OR_RETURN(table != NULL);
    for (; fgets(line, sizeof line, table) != NULL; count++) {
        char *wanted;
        uint64_t bytes = strtoull(line, &wanted, 10);
        line[strcspn(line, "\n")] = '\0';
        CHECK(*wanted == '\t');
        if (!CHECK(strcmp(hl_size_text(bytes, text), wanted + 1) == 0))
            printf("%s: %s\n", line, text);
    }
    (void)fclose(table);
    CHECK(count > 40);
}

CHECK_MAIN(TEST(every_size_of_the_table))
