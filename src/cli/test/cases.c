// SPDX-License-Identifier: Apache-2.0
/*
 * cases.c - reads recorded cases, catches output
 */
#include "cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void cases_open(struct cases *cases, const char *name)
{
    char path[512];
    struct str text = { 0 };
    char buffer[4096];
    size_t got;
    FILE *in;

    snprintf(path, sizeof(path), "%s/%s", CASES_DATA, name);
    in = fopen(path, "r");
    if (!in)
        abort();
    while ((got = fread(buffer, 1, sizeof(buffer), in)) > 0)
        str_add_len(&text, buffer, got);
    fclose(in);
    cases->text = cases->at = str_take(&text);
}

void cases_close(struct cases *cases)
{
    free(cases->text);
}

/* Words as bash would split them: blanks, and both kinds of quotes. */
static int split(char *line, char **argv, int max)
{
    int count = 0;

    while (*line && count < max - 1) {
        char *out = line, quote = '\0';

        argv[count++] = line;
        for (; *line && (quote || *line != ' '); line++) {
            if (quote ? *line == quote : *line == '"' || *line == '\'')
                quote = quote ? '\0' : *line;
            else
                *out++ = *line;
        }
        while (*line == ' ')
            *line++ = '\0';
        *out = '\0';
    }
    argv[count] = NULL;
    return count;
}

/* The output of a case ends where the next line begins with "=== ". */
static char *next_case(char *from)
{
    while (*from && strncmp(from, "=== ", 4) != 0) {
        from += strcspn(from, "\n");
        from += *from == '\n';
    }
    return from;
}

bool case_next(struct cases *cases, struct one_case *one, int words)
{
    char *line = cases->at, *end;
    size_t len;

    if (strncmp(line, "=== ", 4) != 0)
        return false;
    end = strchr(line, '\n');
    *end = '\0';
    line += 4;
    for (int i = 0; i < words; i++) {
        one->words[i] = line;
        line += strcspn(line, " ");
        *line++ = '\0';
    }
    one->argc = split(line, one->argv, 32);
    cases->at = next_case(end + 1);
    len = (size_t)(cases->at - end - 1);
    one->output = realloc(one->output, len + 1);
    memcpy(one->output, end + 1, len);
    one->output[len] = '\0';
    return true;
}

static int saved = -1;
static FILE *file;

void capture_begin(void)
{
    fflush(stdout);
    saved = dup(STDOUT_FILENO);
    file = tmpfile();
    if (saved < 0 || !file || dup2(fileno(file), STDOUT_FILENO) < 0)
        abort();
}

char *capture_end(void)
{
    struct str text = { 0 };
    char buffer[4096];
    size_t got;

    fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    rewind(file);
    while ((got = fread(buffer, 1, sizeof(buffer), file)) > 0)
        str_add_len(&text, buffer, got);
    fclose(file);
    return str_take(&text);
}
