"""Speeds by class of machines of the naive simulator: looked up by name, for each task anew."""

from __future__ import annotations


class Speeds:
    """Mix-in of `tests.sim.engine.reference`, which sets the class of each machine."""

    def _speed(self, g, machine):
        """Return the speed of the tasks of stage g on a machine; 1 where nothing says another."""
        names = self.c.speed_classes
        name = self.class_of_machine[machine] if not self.unit else ""
        speed = float(self.c.stage_speed[g][names.index(name)]) if name in names else 1.0
        return speed / self.crossing[int(self.c.stage_job[g])]

    def _run_s(self, task, g, machine):
        """Return how long a whole run of the task takes there, beside its input."""
        speed = 1.0 if self._is_elastic(int(self.c.stage_job[g])) else self._speed(g, machine)
        return float(self.c.task_duration[task]) / speed

    def _is_remote(self, task, g, machine):
        """Tell whether the input of a task of stage g is on another machine."""
        home = self.c.stage_home[g] + task - self.c.stage_task0[g]
        return bool(self.c.stage_home[g] >= 0 and home % len(self.free) != machine)

    def _has_speeds(self):
        """Tell whether some stage has another speed than 1 on a class of the cluster."""
        stages = range(len(self.size))
        if self.topology.slows and self.c.job_min_tasks.any():
            return True
        return any(self._speed(g, m) != 1.0 for g in stages for m in range(len(self.capacity)))
