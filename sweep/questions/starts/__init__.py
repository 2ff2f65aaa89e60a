"""Question of expected starts: when the jobs of a queue start that wait now."""
