/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.c - logs in as sshd does, with a PAM configuration of its own: client CONFIGURATION-DIRECTORY USER COMMAND [ARGUMENT...]
 *
 * Prints what the account stack says; when it lets the user in, becomes that user and runs the command.
 */
#include <grp.h>
#include <pwd.h>
#include <security/pam_appl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int say(int count, const struct pam_message **messages, struct pam_response **out, void *data)
{
    (void)data;
    for (int i = 0; i < count; i++)
        fprintf(stderr, "%s\n", messages[i]->msg);
    *out = calloc((size_t)count, sizeof(**out));
    return *out ? PAM_SUCCESS : PAM_BUF_ERR;
}

int main(int argc, char **argv)
{
    struct pam_conv conv = { .conv = say };
    pam_handle_t *pam = NULL;

    if (argc < 4 || pam_start_confdir("login", argv[2], &conv, argv[1], &pam) != PAM_SUCCESS)
        return 2;
    int result = pam_acct_mgmt(pam, 0);
    if (result == PAM_SUCCESS)
        result = pam_open_session(pam, 0);
    if (result != PAM_SUCCESS) {
        printf("refused: %s\n", pam_strerror(pam, result));
        pam_end(pam, result);
        return 1;
    }
    struct passwd *user = getpwnam(argv[2]);
    if (!user || initgroups(argv[2], user->pw_gid) < 0 || setgid(user->pw_gid) < 0 || setuid(user->pw_uid) < 0)
        return 2;
    execvp(argv[3], argv + 3);
    return 2;
}
