// SPDX-License-Identifier: Apache-2.0
/*
 * control_reboot.c - scontrol reboot and cancel_reboot
 */
#include <stdio.h>
#include <string.h>

#include "cli/control.h"

static int send(struct control *control, UpdateNodeRequest *request, const char *what)
{
    struct err err = { 0 };
    DoneReply *reply;

    if (cli_call(&control->cli, "UpdateNode", &request->base, &done_reply__descriptor,
                 (ProtobufCMessage **)&reply, &err) == 0)
        return 0;
    fprintf(stderr, "%s error: %s\n", what, err.text);
    return 1;
}

static int read_next(UpdateNodeRequest *request, const char *word)
{
    request->has_next_state = true;
    if (str_ieq(word, "RESUME"))
        request->next_state = REBOOT_TO_RESUME;
    else if (str_ieq(word, "DOWN"))
        request->next_state = REBOOT_TO_DOWN;
    else
        return -1;
    return 0;
}

int control_reboot(struct control *control, int argc, char **argv)
{
    UpdateNodeRequest request = UPDATE_NODE_REQUEST__INIT;
    const char *state = "REBOOT";

    for (int i = 0; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        if (str_ieq(argv[i], "ASAP")) {
            state = strcmp(state, "REBOOT") == 0 ? "REBOOT_ASAP" : state;
        } else if (str_ieq(argv[i], "FORCE")) {
            state = "REBOOT_FORCE";
        } else if (str_istarts(argv[i], "nextstate=")) {
            if (read_next(&request, value + 1) < 0) {
                fprintf(stderr, "Invalid nextstate: %s. Must be RESUME or DOWN\n", value + 1);
                return 1;
            }
        } else if (str_istarts(argv[i], "reason=")) {
            request.reason = value + 1;
        } else if (str_istarts(argv[i], "nodelist=") && !request.names) {
            request.names = value + 1;
        } else if (!value && !request.names) {
            request.names = argv[i];
        } else {
            fprintf(stderr, "Invalid input: %s\n", argv[i]);
            return 1;
        }
    }
    if (str_is_empty(request.names)) {
        fprintf(stderr, "Missing node list. Specify nodes or ALL\n");
        return 1;
    }
    request.state = (char *)state;
    return send(control, &request, "scontrol_reboot_nodes");
}

int control_cancel_reboot(struct control *control, int argc, char **argv)
{
    UpdateNodeRequest request = UPDATE_NODE_REQUEST__INIT;

    request.names = argv[0];
    request.state = (char *)"CANCEL_REBOOT";
    return send(control, &request, "scontrol_cancel_reboot");
}
