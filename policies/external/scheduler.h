/* A scheduler in C: the other side of docs/external_scheduler.md, without Arrow's library.

   Include it in one file. `scheduler_read` reads the facts of an instant from standard input,
   `scheduler_answer` writes jobs and their keys to standard output, the smallest key first:

       struct scheduler_facts facts = {0};
       while (scheduler_read(&facts) > 0) {
           const int32_t *kind = scheduler_column(&facts, "kind");
           ...
           scheduler_answer(n, job, key);
       }

   It reads what the protocol has: uncompressed batches of int32 and float64 columns without nulls,
   little-endian, as Arrow's columnar format, version 5, lays them out. */

#ifndef SCHEDULER_H
#define SCHEDULER_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum scheduler_fact {
    BEGIN = 0, JOB_ARRIVED = 1, STAGE_DONE = 4, JOB_DONE = 8, TIMER = 32, FAULT = 64,
    JOB_FAILED = 128, STAGE = 1024, EDGE = 1025, CHANGED = 1026
};

#define SCHEDULER_MAX_COLUMNS 128
#define SCHEDULER_MAX_BYTES (1 << 30)

struct scheduler_facts {
    int64_t n;                                 /* rows of the batch */
    int n_columns;
    char *name[SCHEDULER_MAX_COLUMNS];
    const void *column[SCHEDULER_MAX_COLUMNS]; /* int32_t or double, valid until the next read */
    unsigned char *buffer;                     /* the last message */
    size_t room;
};

/* Flatbuffers: a table begins with the distance back to its vtable, which has the offset of each
   field in it, 0 for a default. */

static uint16_t scheduler_u16(const unsigned char *p) { uint16_t v; memcpy(&v, p, 2); return v; }
static uint32_t scheduler_u32(const unsigned char *p) { uint32_t v; memcpy(&v, p, 4); return v; }
static int64_t scheduler_i64(const unsigned char *p) { int64_t v; memcpy(&v, p, 8); return v; }

static unsigned char *scheduler_field(unsigned char *table, int field)
{
    int32_t back;
    memcpy(&back, table, 4);
    unsigned char *vtable = table - back;
    if (4 + 2 * field >= scheduler_u16(vtable)) return NULL;
    uint16_t offset = scheduler_u16(vtable + 4 + 2 * field);
    return offset ? table + offset : NULL;
}

static unsigned char *scheduler_follow(unsigned char *at) { return at ? at + scheduler_u32(at) : NULL; }

enum { SCHEDULER_TYPE = 1, SCHEDULER_HEADER, SCHEDULER_BODY };                    /* of a message */
enum { SCHEDULER_IS_SCHEMA = 1, SCHEDULER_IS_BATCH = 3 };
enum { SCHEDULER_FIELDS = 1, SCHEDULER_LENGTH = 0, SCHEDULER_NODES, SCHEDULER_BUFFERS };

static int scheduler_take(void *to, size_t n) { return fread(to, 1, n, stdin) == n; }

static int scheduler_put(const void *from, size_t n) { return fwrite(from, 1, n, stdout) == n; }

static int scheduler_make_room(struct scheduler_facts *facts, size_t n)
{
    if (n <= facts->room) return 1;
    unsigned char *larger = realloc(facts->buffer, n);
    if (!larger) return 0;
    facts->buffer = larger;
    facts->room = n;
    return 1;
}

/* Read the facts of the next instant: 1; 0 at the end of the run, -1 for what is no such stream. */
static int scheduler_read(struct scheduler_facts *facts)
{
    for (;;) {
        uint32_t prefix[2];
        if (!scheduler_take(prefix, 8) || prefix[0] != 0xffffffff) return -1;
        if (prefix[1] == 0) return 0;
        if (prefix[1] > SCHEDULER_MAX_BYTES || !scheduler_make_room(facts, prefix[1])) return -1;
        if (!scheduler_take(facts->buffer, prefix[1])) return -1;
        unsigned char *message = scheduler_follow(facts->buffer);
        unsigned char *type = scheduler_field(message, SCHEDULER_TYPE);
        unsigned char *header = scheduler_follow(scheduler_field(message, SCHEDULER_HEADER));
        unsigned char *body = scheduler_field(message, SCHEDULER_BODY);
        size_t n_body = body ? (size_t)scheduler_i64(body) : 0;
        if (!type || !header || n_body > SCHEDULER_MAX_BYTES) return -1;
        if (*type == SCHEDULER_IS_SCHEMA) {
            unsigned char *fields = scheduler_follow(scheduler_field(header, SCHEDULER_FIELDS));
            uint32_t n = fields ? scheduler_u32(fields) : 0;
            if (n > SCHEDULER_MAX_COLUMNS) return -1;
            for (uint32_t i = 0; i < n; i++) {
                unsigned char *name =
                    scheduler_follow(scheduler_field(scheduler_follow(fields + 4 + 4 * i), 0));
                if (!name) return -1;
                facts->name[i] = strdup((char *)name + 4);
                facts->n_columns = (int)i + 1;
            }
            continue;
        }
        if (*type != SCHEDULER_IS_BATCH) return -1;
        /* the rows, and where the two buffers of each column lie: of nulls, of values */
        unsigned char *length = scheduler_field(header, SCHEDULER_LENGTH);
        unsigned char *buffers = scheduler_follow(scheduler_field(header, SCHEDULER_BUFFERS));
        int64_t offset[SCHEDULER_MAX_COLUMNS];
        if (!buffers || scheduler_u32(buffers) != 2 * (uint32_t)facts->n_columns) return -1;
        facts->n = length ? scheduler_i64(length) : 0;
        for (int i = 0; i < facts->n_columns; i++)
            offset[i] = scheduler_i64(buffers + 4 + 16 * (2 * i + 1));
        if (!scheduler_make_room(facts, n_body) || !scheduler_take(facts->buffer, n_body)) return -1;
        for (int i = 0; i < facts->n_columns; i++) facts->column[i] = facts->buffer + offset[i];
        return 1;
    }
}

/* Return a column of the batch; NULL if there is none of that name. */
static const void *scheduler_column(const struct scheduler_facts *facts, const char *name)
{
    for (int i = 0; i < facts->n_columns; i++)
        if (strcmp(facts->name[i], name) == 0) return facts->column[i];
    return NULL;
}

/* The message of the schema of answers (job int32, key float64), and the head of that of a batch. */
static const unsigned char scheduler_schema[184] = {
    255, 255, 255, 255, 176, 0, 0, 0, 16, 0, 0, 0, 0, 0, 10, 0,
    12, 0, 6, 0, 5, 0, 8, 0, 10, 0, 0, 0, 0, 1, 4, 0,
    12, 0, 0, 0, 8, 0, 8, 0, 0, 0, 4, 0, 8, 0, 0, 0,
    4, 0, 0, 0, 2, 0, 0, 0, 72, 0, 0, 0, 4, 0, 0, 0,
    208, 255, 255, 255, 0, 0, 1, 3, 16, 0, 0, 0, 28, 0, 0, 0,
    4, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 107, 101, 121, 0,
    0, 0, 6, 0, 8, 0, 6, 0, 6, 0, 0, 0, 0, 0, 2, 0,
    16, 0, 20, 0, 8, 0, 6, 0, 7, 0, 12, 0, 0, 0, 16, 0,
    16, 0, 0, 0, 0, 0, 1, 2, 16, 0, 0, 0, 28, 0, 0, 0,
    4, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 106, 111, 98, 0,
    8, 0, 12, 0, 8, 0, 7, 0, 8, 0, 0, 0, 0, 0, 0, 1,
    32, 0, 0, 0, 0, 0, 0, 0,
};

static const unsigned char scheduler_head[192] = {
    255, 255, 255, 255, 184, 0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0,
    12, 0, 22, 0, 6, 0, 5, 0, 8, 0, 12, 0, 12, 0, 0, 0,
    0, 3, 4, 0, 24, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 10, 0, 24, 0, 12, 0, 4, 0, 8, 0, 10, 0, 0, 0,
    92, 0, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    4, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0,
    8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0,
    1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
};

/* Answer with the keys of `n` jobs; 0 jobs change nothing. 1, or 0 if nobody reads any more. */
static int scheduler_answer(int64_t n, const int32_t *job, const double *key)
{
    static int has_begun = 0;
    if (!has_begun && !scheduler_put(scheduler_schema, sizeof scheduler_schema)) return 0;
    has_begun = 1;
    unsigned char head[sizeof scheduler_head];
    memcpy(head, scheduler_head, sizeof head);
    int64_t n_jobs = (4 * n + 7) / 8 * 8, n_body = n_jobs + 8 * n, zero = 0;
    unsigned char *message = scheduler_follow(head + 8);
    unsigned char *batch = scheduler_follow(scheduler_field(message, SCHEDULER_HEADER));
    unsigned char *nodes = scheduler_follow(scheduler_field(batch, SCHEDULER_NODES));
    unsigned char *buffers = scheduler_follow(scheduler_field(batch, SCHEDULER_BUFFERS));
    int64_t four_n = 4 * n, eight_n = 8 * n;
    memcpy(scheduler_field(message, SCHEDULER_BODY), &n_body, 8);
    memcpy(scheduler_field(batch, SCHEDULER_LENGTH), &n, 8);
    memcpy(nodes + 4, &n, 8);
    memcpy(nodes + 4 + 16, &n, 8);
    memcpy(buffers + 4 + 16, &zero, 8);
    memcpy(buffers + 4 + 24, &four_n, 8);
    memcpy(buffers + 4 + 32, &n_jobs, 8);
    memcpy(buffers + 4 + 48, &n_jobs, 8);
    memcpy(buffers + 4 + 56, &eight_n, 8);
    return scheduler_put(head, sizeof head) && scheduler_put(job, (size_t)four_n) &&
           scheduler_put(&zero, (size_t)(n_jobs - four_n)) && scheduler_put(key, (size_t)eight_n) &&
           fflush(stdout) == 0;
}

#endif
