"""Classes on which the policy lets jobs run, of the naive simulator."""

from __future__ import annotations

from sim.engine.plan import Right, WhenPreempted


class Selecting:
    """Mix-in of `tests.sim.engine.reference`."""

    def _runs_on(self, j, m):
        """Tell whether the policy lets job j run on machine m now."""
        return bool(int(self.plan.jobs["runs_on"][j]) >> self._class_of(m) & 1)

    def _stop_outside(self, changed):
        """Stop what runs of changed jobs where the policy lets them run no more."""
        if not self.plan.preemption or Right.RUNS_ON not in self.plan.preemption.by:
            return
        cancelled = set()
        for entry in [*self.running]:
            j = int(self.c.stage_job[entry[2]])
            if j not in changed or self._runs_on(j, entry[3]):
                continue
            if self._when(j) == WhenPreempted.CANCEL:
                cancelled.add(j)
            elif entry[5]:
                self.stopping.add(j)
            else:
                self._stop_task(entry, "preempted")
        for j in changed:
            if all(self._runs_on(j, m) for m, *_ in self.idle[j] or []):
                continue
            if self._when(j) == WhenPreempted.CANCEL:
                cancelled.add(j)
            else:
                self.stopping.add(j)
        for j in changed:
            if j in cancelled:
                cancelled.remove(j)
                self._end_early(j, "cancelled", 4)
        self._stop_gangs("preempted")
