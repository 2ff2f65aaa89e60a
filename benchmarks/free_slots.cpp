// First come, first served on a pool of slots: each task takes the slot that is free first.
// Returns the mean completion time of the jobs, s; job j has the tasks task0[j] to task0[j + 1].

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

extern "C" double free_slots(const double *submit, const int64_t *task0, int64_t n_jobs,
                             const double *duration, int64_t n_slots) {
    std::priority_queue<double, std::vector<double>, std::greater<double>> free;
    for (int64_t slot = 0; slot < n_slots; slot++) free.push(0.0);
    double total = 0.0;
    for (int64_t job = 0; job < n_jobs; job++) {
        double finish = submit[job];
        for (int64_t task = task0[job]; task < task0[job + 1]; task++) {
            double start = free.top() > submit[job] ? free.top() : submit[job];
            double end = start + duration[task];
            free.pop();
            free.push(end);
            if (end > finish) finish = end;
        }
        total += finish - submit[job];
    }
    return total / n_jobs;
}
