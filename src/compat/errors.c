// SPDX-License-Identifier: Apache-2.0
/*
 * errors.c - errno with Slurm's numbers, and their texts
 *
 * A number that base/err_list.h knows has the text of Slurm's commands; another one of Slurm's is its name in words.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "compat/compat.h"

static const struct {
    int number;
    const char *name;
} numbers[] = {
#define ERROR_NUMBER(name, value) { value, #name },
#include "errors.h"
#undef ERROR_NUMBER
};

enum { NAME_BYTES = 80 };

/* "ESLURM_JOB_TIMEOUT_KILLED" as "Job timeout killed", in memory of this thread. */
static char *words_of(const char *name)
{
    static _Thread_local char text[NAME_BYTES];
    const char *at = str_starts(name, "ESLURM_")      ? name + 7
                     : str_starts(name, "ESLURMD_")   ? name + 8
                     : str_starts(name, "SLURM_")     ? name + 6
                     : str_starts(name, "ESPANK_")    ? name + 7
                     : str_starts(name, "SLURMCTLD_") ? name + 10
                                                      : name;
    size_t i = 0;

    for (; at[i] && i + 1 < sizeof(text); i++)
        text[i] = at[i] == '_' ? ' ' : (char)(i ? tolower((unsigned char)at[i]) : at[i]);
    text[i] = '\0';
    return text;
}

char *slurm_strerror(int errnum)
{
    if (errnum == SLURM_SUCCESS)
        return (char *)"No error";
    if (errnum == SLURM_ERROR)
        return (char *)"Unspecified error";
    if (errnum == SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR)
        return (char *)err_text(ERR_UNREACHABLE);
    if (errnum == SLURMCTLD_COMMUNICATIONS_RECEIVE_ERROR)
        return (char *)"Unable to contact slurm controller (receive failure)";
    enum err_code code = err_from_slurm(errnum);
    if (code != ERR_OK)
        return (char *)err_text(code);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        if (numbers[i].number == errnum)
            return words_of(numbers[i].name);
    }
    return strerror(errnum);
}

#if EXPORTS_slurm_get_errno
int slurm_get_errno(void)
{
    return errno;
}
#endif

#if EXPORTS_slurm_seterrno
void slurm_seterrno(int errnum)
{
    errno = errnum;
}
#endif

void slurm_perror(const char *msg)
{
    fprintf(stderr, "%s: %s\n", msg ? msg : "", slurm_strerror(errno));
}

#if HAS_slurm_errtab_t
slurm_errtab_t slurm_errtab[] = {
#define ERROR_NUMBER(name, value) { value, (char *)#name, (char *)#name },
#include "errors.h"
#undef ERROR_NUMBER
};
unsigned int slurm_errtab_size = ARRAY_LEN(slurm_errtab);
#endif
