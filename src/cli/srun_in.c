// SPDX-License-Identifier: Apache-2.0
/*
 * srun_in.c - standard input: read once, sent to every node that takes it
 *
 * Each node may be sent SRUN_CREDIT bytes more than its slowest task has read. What some node has not
 * said to have is kept, at most that much: a connection that is made again goes on where it broke.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/srun.h"
#include "client/client.h"
#include "sys/files.h"

static bool takes_input(const struct srun *srun, const struct srun_node *node)
{
    if (!node->launched || node->over || !node->node)
        return false;
    if (srun->request.pty)
        return node->node->tasks[0] == 0;
    return !srun->has_input_task ||
           (size_t)srun->tasks[srun->input_task].node == (size_t)(node - srun->nodes);
}

/* Up to which offset a node may be sent. */
static uint64_t limit_of(const struct srun_node *node)
{
    return node->input_sent + node->credit;
}

size_t srun_input_room(const struct srun *srun)
{
    uint64_t end = srun->input_first + srun->input_len, limit = UINT64_MAX;

    for (size_t i = 0; i < srun->node_count; i++) {
        if (takes_input(srun, &srun->nodes[i]))
            limit = MIN(limit, limit_of(&srun->nodes[i]));
    }
    return limit == UINT64_MAX || limit <= end ? 0 : (size_t)MIN(limit - end, SRUN_INPUT_BYTES);
}

/* Drops what no node can ask for again: it is behind the credit of all. */
static void forget_old(struct srun *srun)
{
    uint64_t oldest = srun->input_first + srun->input_len;

    for (size_t i = 0; i < srun->node_count; i++) {
        const struct srun_node *node = &srun->nodes[i];
        if (!takes_input(srun, node))
            continue;
        uint64_t taken = limit_of(node) > SRUN_CREDIT ? limit_of(node) - SRUN_CREDIT : 0;
        oldest = MIN(oldest, taken);
    }
    size_t gone = oldest > srun->input_first ? (size_t)(oldest - srun->input_first) : 0;
    memmove(srun->input, srun->input + gone, srun->input_len - gone);
    srun->input_len -= gone;
    srun->input_first += gone;
}

void srun_send_input(struct srun *srun, struct srun_node *node)
{
    uint64_t end = srun->input_first + srun->input_len;

    while (takes_input(srun, node) && node->stream && node->attached) {
        RunStepIn in = RUN_STEP_IN__INIT;
        StepData data = STEP_DATA__INIT;
        size_t len =
            (size_t)MIN(MIN(end - node->input_sent, (uint64_t)node->credit), SRUN_INPUT_BYTES);
        bool last = srun->input_eof && node->input_sent + len == end && !node->eof_sent;
        if (len == 0 && !last)
            return;
        data.has_stream = data.has_data = data.has_offset = true;
        data.stream = STEP_STREAM_IN;
        data.offset = node->input_sent;
        data.data =
            (ProtobufCBinaryData){ len, srun->input + (node->input_sent - srun->input_first) };
        data.has_eof = data.eof = last;
        in.what_case = RUN_STEP_IN__WHAT_DATA;
        in.data = &data;
        client_stream_send(node->stream, &in.base);
        node->input_sent += len;
        node->credit -= len;
        node->eof_sent = last;
    }
}

void srun_read_input(struct srun *srun)
{
    if (!srun->input)
        srun->input = mem_new(SRUN_CREDIT + SRUN_INPUT_BYTES);
    forget_old(srun);
    size_t room = MIN(srun_input_room(srun), SRUN_CREDIT + SRUN_INPUT_BYTES - srun->input_len);
    if (room == 0)
        return;
    ssize_t len = file_read_soon(srun->input_fd, srun->input + srun->input_len, room);
    if (len < 0 && errno == EAGAIN)
        return;
    if (len > 0)
        srun->input_len += (size_t)len;
    srun->input_eof = len <= 0;
    for (size_t i = 0; i < srun->node_count; i++)
        srun_send_input(srun, &srun->nodes[i]);
    if (len <= 0) {
        if (srun->input_fd > STDERR_FILENO)
            close(srun->input_fd);
        srun->input_fd = -1;
    }
}
