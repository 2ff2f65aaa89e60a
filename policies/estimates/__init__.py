"""Expected durations of tasks, by stage: from the run, from history, as declared, or true."""
