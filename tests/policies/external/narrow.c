#include "scheduler.h"

/* Fewest tasks first. */
int main(void)
{
    struct scheduler_facts facts = {0};
    int32_t *job = NULL;
    double *key = NULL;
    int status;
    while ((status = scheduler_read(&facts)) > 0) {
        const int32_t *kind = scheduler_column(&facts, "kind");
        const int32_t *row = scheduler_column(&facts, "row");
        const int32_t *n_tasks = scheduler_column(&facts, "n_tasks");
        int64_t n = 0;
        job = realloc(job, 4 * (size_t)facts.n);
        key = realloc(key, 8 * (size_t)facts.n);
        for (int64_t i = 0; i < facts.n; i++)
            if (kind[i] == JOB_ARRIVED) {
                job[n] = row[i];
                key[n++] = n_tasks[i];
            }
        if (!scheduler_answer(n, job, key)) return 1;
    }
    return status < 0;
}
